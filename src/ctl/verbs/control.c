/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* pause, resume, release and reload: the verbs that change something. They print nothing on success. */

#include "ctl/client.h"
#include "ctl/ctl.h"

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

CtlExit verb_pause(const CtlOptions *options, int argc, char **argv)
{
    return for_each_name(options, "Pause", argc, argv);
}

CtlExit verb_resume(const CtlOptions *options, int argc, char **argv)
{
    return for_each_name(options, "Resume", argc, argv);
}

CtlExit verb_release(const CtlOptions *options, int argc, char **argv)
{
    return for_each_name(options, "Release", argc, argv);
}

CtlExit verb_reload(const CtlOptions *options, int argc, char **argv)
{
    return client_query(options, "Reload", NULL, NULL);
}
