/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* moves: the actions carried out, and with --follow new ones as they happen, until SIGINT as in `tail -f`.
 *
 * The daemon sends a signal for each action, up to a limit per tick. So the sequence number counts: after a
 * gap the missing actions are fetched, and those already seen are dropped. */

#include "ctl/client.h"
#include "ctl/sentence.h"
#include "ctl/verbs/verb.h"
#include "ctl/view.h"

#include "numaplace/bus.h"

#include <poll.h>

#define FOLLOW_LINES 10U /* shown before following, as tail(1) does */

typedef struct Follow {
    const CtlOptions *options;
    sd_bus *bus;
    int64_t last; /* sequence of the last one printed */
    CtlExit code;
} Follow;

static CtlExit print_move(const CtlOptions *options, json_object *move)
{
    CLEANUP(view_text_done) ViewText text = {0};

    if (options->json != CTL_JSON_OFF)
        return ctl_print_json(options, move);
    sentence_move(move, 0, &text);
    if (text.failed)
        return ctl_fail_oom();
    view_say(NULL, "%s\n", text.text);
    return CTL_EXIT_OK;
}

/* Drops all but the last `keep` entries. */
static void keep_last(json_object *list, size_t keep)
{
    size_t length = view_length(list);

    if (length > keep)
        (void)json_object_array_del_idx(list, 0, length - keep);
}

static CtlExit print_all(const CtlOptions *options, json_object *list)
{
    for (size_t i = 0; i < view_length(list); i++) {
        CtlExit code = print_move(options, json_object_array_get_idx(list, i));

        if (code != CTL_EXIT_OK)
            return code;
    }
    return CTL_EXIT_OK;
}

static int64_t last_sequence(json_object *list, int64_t fallback)
{
    size_t length = view_length(list);

    return length > 0 ? view_number(json_object_array_get_idx(list, length - 1), "sequence", fallback)
                      : fallback;
}

static CtlExit follow_move(Follow *follow, json_object *move)
{
    CLEANUP_JSON json_object *list = NULL;
    int64_t sequence = view_number(move, "sequence", 0);
    CtlExit code;

    if (sequence <= follow->last)
        return CTL_EXIT_OK;
    if (sequence == follow->last + 1) {
        follow->last = sequence;
        return print_move(follow->options, move);
    }
    list = json_object_new_array();
    if (!list)
        return ctl_fail_oom();
    code = client_list(follow->bus, "ListMoves", follow->last, list);
    if (code != CTL_EXIT_OK)
        return code;
    follow->last = last_sequence(list, sequence);
    return print_all(follow->options, list);
}

static int on_moved(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    CLEANUP_JSON json_object *move = NULL;
    Follow *follow = userdata;

    if (follow->code != CTL_EXIT_OK)
        return 0;
    if (bus_json_read(message, NULL, &move) < 0)
        follow->code = ctl_fail(CTL_EXIT_FAILURE, "numaplaced's signal cannot be read");
    else
        follow->code = follow_move(follow, move);
    return 0;
}

/* Waits for a message from the daemon. Returns false when the reader of the output has gone. */
static bool wait_for_bus(sd_bus *bus)
{
    struct pollfd fds[] = {
        {.fd = sd_bus_get_fd(bus), .events = (short)sd_bus_get_events(bus)},
        {.fd = STDOUT_FILENO},
    };

    (void)poll(fds, ARRAY_SIZE(fds), -1);
    return !(fds[1].revents & POLLERR);
}

static CtlExit follow_loop(Follow *follow)
{
    while (follow->code == CTL_EXIT_OK && !ctl_flush()) {
        int r = sd_bus_process(follow->bus, NULL);

        if (r < 0)
            return client_fail(r);
        if (r == 0 && !wait_for_bus(follow->bus))
            return CTL_EXIT_OK;
    }
    return follow->code;
}

static CtlExit verb_moves(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP_JSON json_object *list = json_object_new_array();
    CLEANUP_BUS sd_bus *bus = NULL;
    Follow follow = {.options = options};
    CtlExit code;
    int r;

    if (!list)
        return ctl_fail_oom();
    code = client_connect(options, &bus);
    if (code != CTL_EXIT_OK)
        return code;
    follow.bus = bus;
    /* Subscribe before asking, so that no action is missed. */
    if (options->follow) {
        r = sd_bus_match_signal(bus, NULL, NULL, NUMAPLACE_BUS_PATH, NUMAPLACE_BUS_INTERFACE_MANAGER, "Moved",
                                on_moved, &follow);
        if (r < 0)
            return client_fail(r);
    }
    code = client_list(bus, "ListMoves", 0, list);
    if (code != CTL_EXIT_OK)
        return code;
    follow.last = last_sequence(list, 0);
    if (options->lines_given || options->follow)
        keep_last(list, options->lines_given ? options->lines : FOLLOW_LINES);

    if (!options->follow && options->json != CTL_JSON_OFF)
        return ctl_print_json(options, list);
    code = print_all(options, list);
    return code != CTL_EXIT_OK || !options->follow ? code : follow_loop(&follow);
}

const CtlVerbRow ctl_verb_moves = {
    .name = "moves",
    .arguments = "",
    .accepts = CTL_ACCEPTS(FOLLOW) | CTL_ACCEPTS(LINES),
    .help = "actions carried out, newest last",
    .run = verb_moves,
    .pages = true,
};
