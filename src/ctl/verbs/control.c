/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* pause, resume, release and reload: the verbs that change something. They print nothing on success. */

#include "ctl/client.h"
#include "ctl/verbs/verb.h"

/* Calls `method` once for each name, or once with the empty name for --all. Continues after a failure, so
 * that a name that is gone does not keep the others from being released. Returns the first failure. */
static CtlExit for_each_name(const CtlOptions *options, const char *method, int argc, char **argv)
{
    CLEANUP_BUS sd_bus *bus = NULL;
    CtlExit result = client_connect(options, &bus);

    if (result != CTL_EXIT_OK)
        return result;
    if (options->all)
        return client_call(bus, method, NULL, "s", "");
    for (int i = 0; i < argc; i++) {
        CtlExit code = client_call(bus, method, NULL, "s", argv[i]);

        if (result == CTL_EXIT_OK)
            result = code;
    }
    return result;
}

static CtlExit verb_pause(const CtlOptions *options, int argc, char **argv)
{
    return for_each_name(options, "Pause", argc, argv);
}

const CtlVerbRow ctl_verb_pause = {
    .name = "pause",
    .arguments = "[WORKLOAD...]",
    .max = -1,
    .accepts = CTL_ACCEPTS(ALL),
    .help = "lend it nothing more; it keeps its home",
    .run = verb_pause,
};

static CtlExit verb_resume(const CtlOptions *options, int argc, char **argv)
{
    return for_each_name(options, "Resume", argc, argv);
}

const CtlVerbRow ctl_verb_resume = {
    .name = "resume",
    .arguments = "[WORKLOAD|PID...]",
    .max = -1,
    .accepts = CTL_ACCEPTS(ALL),
    .help = "end a pause or a release",
    .run = verb_resume,
};

static CtlExit verb_release(const CtlOptions *options, int argc, char **argv)
{
    return for_each_name(options, "Release", argc, argv);
}

const CtlVerbRow ctl_verb_release = {
    .name = "release",
    .arguments = "[WORKLOAD|PID...]",
    .max = -1,
    .accepts = CTL_ACCEPTS(ALL),
    .help = "put its threads back and leave it alone",
    .run = verb_release,
};

static CtlExit verb_reload(const CtlOptions *options, int argc, char **argv)
{
    return client_query(options, "Reload", NULL, NULL);
}

const CtlVerbRow ctl_verb_reload = {
    .name = "reload",
    .arguments = "",
    .help = "read configuration and policies again",
    .run = verb_reload,
};
