/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* --record=: every plan of one run with its input, in the form of numaplaced --record=, for replay and top.
 * As for --plot=, the run is repeated. The record is kept in memory until it is complete. */

#include "ctl/verbs/simulate/runs.h"
#include "plan/transcript.h"

#include <string.h>

typedef struct Recording {
    FILE *out;
    char *text, *policies;
    size_t len;
    uint64_t full_usec; /* later plans are not recorded; 0: all are */
} Recording;

static void recording_done(Recording *recording)
{
    if (recording->out)
        (void)fclose(recording->out);
    free(recording->text);
    free(recording->policies);
}

static int on_plan(void *userdata, const TranscriptEntry *entry)
{
    Recording *recording = userdata;
    int r;

    if (recording->full_usec > 0)
        return 0;
    r = transcript_write(recording->out, &recording->policies, entry);
    if (r == 0 && ferror(recording->out))
        r = -ENOMEM;
    /* As in numaplaced: another entry might not fit. */
    if (ftello(recording->out) >= (off_t)(TRANSCRIPT_MAX - TRANSCRIPT_ENTRY_MAX))
        recording->full_usec = entry->world->now_usec;
    return r;
}

static void write_text(FILE *out, void *userdata)
{
    const Recording *recording = userdata;

    (void)fwrite(recording->text, 1, recording->len, out);
}

CtlExit simulate_record(const SimSpec *spec, const char *path)
{
    CLEANUP(recording_done) Recording recording = {0};
    CLEANUP(sim_result_free_p) SimResult *result = NULL;
    CLEANUP_FREE char *error = NULL;
    const SimHooks hooks = {.userdata = &recording, .plan = on_plan};
    size_t variant = 0;
    int r;

    while (variant < spec->n_variants && !spec->variants[variant].daemon)
        variant++;
    if (variant == spec->n_variants)
        return ctl_fail(CTL_EXIT_FAILURE,
                        "--record= needs a variant with a daemon: without one, nothing is planned");
    recording.out = open_memstream(&recording.text, &recording.len);
    if (!recording.out)
        return ctl_fail_oom();
    r = sim_run(spec, variant, 1, &hooks, &result, &error);
    if (r < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "variant %s, seed 1: %s", spec->variants[variant].name,
                        error ? error : strerror(-r));
    if (recording.full_usec > 0)
        (void)ctl_fail(CTL_EXIT_OK, "%s: full before the end of the scenario", path);
    r = fclose(TAKE_PTR(recording.out));
    return r == 0 ? ctl_replace_file(path, write_text, &recording) : ctl_fail_oom();
}
