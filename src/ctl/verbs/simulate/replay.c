/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* replay: plans again from a record of numaplaced --record=, and shows which plans differ. */

#include "base/human.h"
#include "ctl/verbs/verb.h"
#include "ctl/view.h"
#include "plan/transcript.h"

#include <string.h>

/* Differing plans shown; all are counted. */
#define SHOWN_MAX 16U

typedef struct Replay {
    uint64_t n, n_same, n_by_use;
    json_object *different; /* of {tick, by_use, recorded, now} */
} Replay;

static int add_different(Replay *replay, const TranscriptPlan *plan)
{
    json_object *object;

    if (view_length(replay->different) >= SHOWN_MAX)
        return 0;
    object = json_add_object(replay->different, NULL);
    if (json_set_number(object, "tick", plan->tick) < 0 ||
        json_set_bool(object, "by_use", plan->by_use) < 0 ||
        json_set_text(object, "recorded", plan->recorded) < 0 || json_set_text(object, "now", plan->now) < 0)
        return -ENOMEM;
    return 0;
}

static int take(Replay *replay, const TranscriptPlan *plan)
{
    bool same = strcmp(plan->recorded, plan->now) == 0;

    replay->n++;
    replay->n_same += same;
    replay->n_by_use += plan->by_use;
    return same ? 0 : add_different(replay, plan);
}

static CtlExit replay_all(Replay *replay, const char *path, const char *text, size_t len)
{
    CLEANUP(transcript_reader_done) TranscriptReader reader = transcript_reader(text, len);
    TranscriptPlan plan;
    int r;

    while ((r = transcript_next(&reader, &plan)) > 0) {
        r = take(replay, &plan);
        transcript_plan_done(&plan);
        if (r < 0)
            return ctl_fail_oom();
    }
    if (r == -EINVAL)
        return ctl_fail(CTL_EXIT_FAILURE, "%s: %s", path, reader.error);
    if (r < 0)
        return ctl_fail_oom();
    return replay->n > 0 ? CTL_EXIT_OK
                         : ctl_fail(CTL_EXIT_FAILURE, "%s: expected a recording of at least one plan", path);
}

static void print_text(const char *title, const char *text)
{
    (void)printf("%s:\n", title);
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        view_say(NULL, "  %.*s\n", (int)n, text);
    }
}

static CtlExit print(const Replay *replay)
{
    size_t n = view_length(replay->different);

    for (size_t i = 0; i < n; i++) {
        json_object *object = json_object_array_get_idx(replay->different, i);

        (void)printf("tick %lld%s\n", (long long)view_number(object, "tick", 0),
                     view_bool(object, "by_use") ? ", memory by use" : "");
        print_text("recorded", view_string(object, "recorded"));
        print_text("now", view_string(object, "now"));
    }
    (void)printf("%llu %s, %llu of them of memory by use: %llu the same, %llu different\n",
                 (unsigned long long)replay->n, human_noun(replay->n, "plan", "plans"),
                 (unsigned long long)replay->n_by_use, (unsigned long long)replay->n_same,
                 (unsigned long long)(replay->n - replay->n_same));
    return CTL_EXIT_OK;
}

static CtlExit print_json(const CtlOptions *options, const Replay *replay)
{
    CLEANUP_JSON json_object *result = json_object_new_object();

    if (json_set_number(result, "plans", replay->n) < 0 ||
        json_set_number(result, "by_use", replay->n_by_use) < 0 ||
        json_set_number(result, "same", replay->n_same) < 0 ||
        json_set(result, "different", json_object_get(replay->different)) < 0)
        return ctl_fail_oom();
    return ctl_print_json(options, result);
}

static CtlExit verb_replay(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP_JSON json_object *different = json_object_new_array();
    CLEANUP_FREE char *text = NULL;
    Replay replay = {.different = different};
    size_t len = 0;
    CtlExit code = ctl_read_file(argv[0], TRANSCRIPT_MAX, &text, &len);

    if (code == CTL_EXIT_OK)
        code = different ? replay_all(&replay, argv[0], text, len) : ctl_fail_oom();
    if (code != CTL_EXIT_OK)
        return code;
    code = options->json != CTL_JSON_OFF ? print_json(options, &replay) : print(&replay);
    return code == CTL_EXIT_OK && replay.n_same < replay.n ? CTL_EXIT_FAILURE : code;
}

const CtlVerbRow ctl_verb_replay = {
    .name = "replay",
    .arguments = "FILE",
    .min = 1,
    .max = 1,
    .help = "plan again from a file written by --record=",
    .run = verb_replay,
    .alone = true,
};
