/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The policy verbs read the daemon's directories themselves, so that they work without a running daemon, on
 * another machine's files, and without the right to talk to the daemon. */

#include "ctl/verbs/policy/files.h"

#include "base/parse.h"

#include <string.h>

static const char *const default_dirs[] = {POLICY_DIRECTORIES};
_Static_assert(ARRAY_SIZE(default_dirs) <= CTL_POLICY_DIRS_MAX, "PolicyDirs has room for them");

static char *below_root(const char *root, const char *dir)
{
    if (!strcmp(root, "/"))
        return strdup(dir);
    return format_text("%s/%s", root, dir + (*dir == '/'));
}

int policy_dirs_init(const CtlOptions *options, PolicyDirs *ret)
{
    const char *const *from = options->n_policy_dirs > 0 ? options->policy_dirs : default_dirs;
    size_t n = options->n_policy_dirs > 0 ? options->n_policy_dirs : ARRAY_SIZE(default_dirs);

    *ret = (PolicyDirs){0};
    for (size_t i = 0; i < n; i++) {
        ret->dirs[i] = below_root(options->root, from[i]);
        if (!ret->dirs[i]) {
            policy_dirs_done(ret);
            return -ENOMEM;
        }
    }
    return 0;
}

void policy_dirs_done(PolicyDirs *dirs)
{
    for (size_t i = 0; dirs->dirs[i]; i++)
        free(dirs->dirs[i]);
    *dirs = (PolicyDirs){0};
}

void policy_files_complain(const ConfReport *report)
{
    for (size_t i = 0; i < report->n_messages; i++) {
        const ConfMessage *m = &report->messages[i];
        CLEANUP_FREE char *text = conf_message_format(m);

        (void)ctl_fail(m->severity == CONF_SEVERITY_ERROR ? CTL_EXIT_FAILURE : CTL_EXIT_OK, "%s",
                       text ? text : "out of memory");
    }
}

bool policy_files_is_named(const char *name, const char *asked)
{
    static const char suffix[] = ".policy";
    size_t n = strlen(name), m = strlen(asked), k = sizeof(suffix) - 1;

    n -= n > k && !strcmp(name + n - k, suffix) ? k : 0;
    m -= m > k && !strcmp(asked + m - k, suffix) ? k : 0;
    return n == m && !strncmp(name, asked, n);
}

CtlExit policy_files_load(const CtlOptions *options, PolicySet **ret)
{
    CLEANUP(conf_report_done) ConfReport report = {0};
    CLEANUP(policy_dirs_done) PolicyDirs dirs = {0};
    int r = policy_dirs_init(options, &dirs);

    if (r < 0)
        return ctl_fail_oom();
    r = policy_set_load((const char *const *)dirs.dirs, NULL, ret, &report);
    policy_files_complain(&report);
    if (r == -EBADMSG)
        return ctl_fail(CTL_EXIT_FAILURE, "the policies have errors. See numaplacectl policy verify.");
    if (r < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "cannot read the policies: %s", strerror(-r));
    return CTL_EXIT_OK;
}
