/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The command line of numaplacectl. Parsing and --help follow from one table of verbs and one of options. */

#include "ctl/ctl.h"

typedef struct CtlVerbRow {
    const char *name;      /* one word, or two for the policy family */
    const char *arguments; /* as --help shows them */
    int min, max;          /* number of arguments; max -1: any */
    unsigned accepts;      /* bit for each option that only some verbs take */
    const char *help;
    CtlVerb run;
    bool pages; /* only prints, and possibly more than a screen */
} CtlVerbRow;

/* What main() is to do: run a verb with its arguments, or exit with the returned code when `verb` is NULL. */
typedef struct CtlCommand {
    CtlOptions options;
    const CtlVerbRow *verb;
    int argc;
    char **argv;
} CtlCommand;

/* Parses the command line and reorders argv. Prints the help or version itself. */
CtlExit options_parse(int argc, char **argv, CtlCommand *ret);
