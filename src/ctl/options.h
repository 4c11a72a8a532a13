/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The command line of numaplacectl. Parsing and --help follow from one table of verbs and one of options. */

#include "ctl/verbs/verb.h"

/* What main() is to do: run a verb with its arguments, or exit with the returned code when `verb` is NULL. */
typedef struct CtlCommand {
    CtlOptions options;
    const CtlVerbRow *verb;
    int argc;
    char **argv;
} CtlCommand;

/* Parses the command line and reorders argv. Prints the help or version itself. */
CtlExit options_parse(int argc, char **argv, CtlCommand *ret);
