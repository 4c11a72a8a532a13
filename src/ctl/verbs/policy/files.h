/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where the policy verbs look for files, and how they report faulty ones. */

#include "conf/ini.h"
#include "ctl/ctl.h"
#include "policy/policy.h"

/* The directories of policies, NULL-terminated, first wins: --policy-dir= or the built-in ones, each below --root=. */
typedef struct PolicyDirs {
    char *dirs[CTL_POLICY_DIRS_MAX + 1];
} PolicyDirs;

int policy_dirs_init(const CtlOptions *options, PolicyDirs *ret);
void policy_dirs_done(PolicyDirs *dirs);

/* Whether `asked` means the policy, or the file, called `name`; both with or without ".policy". */
bool policy_files_is_named(const char *name, const char *asked);

/* Loads all policies; messages about them go to standard error. */
CtlExit policy_files_load(const CtlOptions *options, PolicySet **ret);

/* Writes the messages of a report to standard error, one per line. */
void policy_files_complain(const ConfReport *report);
