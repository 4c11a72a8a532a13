/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The command line of numaplacectl: one table of verbs, one of options, from which parsing and --help follow. */

#include "ctl/ctl.h"

typedef struct CtlVerbRow {
    const char *name;      /* one word, or two for the policy family */
    const char *arguments; /* as --help shows them */
    int min, max;          /* number of arguments; max -1: any */
    unsigned accepts;      /* bit per option that only some verbs take */
    const char *help;
    CtlVerb run;
    bool pages; /* may print more than a screen, and nothing but that */
} CtlVerbRow;

/* What main() is to do: run a verb with its arguments, or, when `verb` is NULL, exit with the code returned. */
typedef struct CtlCommand {
    CtlOptions options;
    const CtlVerbRow *verb;
    int argc;
    char **argv;
} CtlCommand;

/* Parses the command line (argv is reordered). Prints the help or version itself. */
CtlExit options_parse(int argc, char **argv, CtlCommand *ret);
