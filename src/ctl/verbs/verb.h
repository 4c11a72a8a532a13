/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a verb of numaplacectl is: its name, its arguments, the options it takes, and the function that runs it. */

#include "ctl/ctl.h"

/* Options, in the order of --help. */
typedef enum CtlOptionId {
    CTL_OPTION_HELP,
    CTL_OPTION_VERSION,
    CTL_OPTION_SOCKET,
    CTL_OPTION_JSON,
    CTL_OPTION_NO_LEGEND,
    CTL_OPTION_NO_PAGER,
    CTL_OPTION_ALL,
    CTL_OPTION_FOLLOW,
    CTL_OPTION_LINES,
    CTL_OPTION_XML,
    CTL_OPTION_SYNTHETIC,
    CTL_OPTION_REHEARSE,
    CTL_OPTION_WHOLE_MACHINE,
    CTL_OPTION_EFFECTIVE,
    CTL_OPTION_POLICY_DIR,
    CTL_OPTION_ROOT,
    CTL_OPTION_SEEDS,
    CTL_OPTION_PLOT,
    CTL_OPTION_RECORD,
    CTL_OPTION_OUTPUT,
    CTL_OPTION_POLICY,
    CTL_OPTION_NO_DAEMON,
    CTL_OPTION_RUNTIME,
    CTL_OPTION_SECONDS,
    CTL_OPTION_PRINT_POLICY,
    CTL_OPTION_ONCE,
    CTL_OPTION_WATCH,
    CTL_OPTION_SINCE,
    CTL_OPTION_HTML,
    CTL_OPTION_MAX,
} CtlOptionId;

/* A bit of CtlVerbRow.accepts: CTL_ACCEPTS(WATCH) for --watch. */
#define CTL_ACCEPTS(id) (1U << CTL_OPTION_##id)

/* For verbs that read a topology themselves, and for verbs that read policies themselves. */
#define CTL_ACCEPTS_TOPOLOGY \
    (CTL_ACCEPTS(XML) | CTL_ACCEPTS(SYNTHETIC) | CTL_ACCEPTS(REHEARSE) | CTL_ACCEPTS(WHOLE_MACHINE))
#define CTL_ACCEPTS_POLICY (CTL_ACCEPTS(POLICY_DIR) | CTL_ACCEPTS(ROOT))

/* Runs a verb. `argv` holds its arguments only. */
typedef CtlExit (*CtlVerb)(const CtlOptions *options, int argc, char **argv);

typedef struct CtlVerbRow {
    const char *name;      /* one word, or two for the policy family */
    const char *arguments; /* as --help shows them; empty: takes none */
    int min, max;          /* number of arguments; max -1: any */
    unsigned accepts;      /* bit for each option that only some verbs take */
    const char *help;
    CtlVerb run;
    bool pages; /* only prints, and possibly more than a screen */
    bool alone; /* needs neither a running daemon nor root */
} CtlVerbRow;

/* All verbs in the order of --help, then NULL. The file of a verb defines its row; the table is made from the list of
 * verbs in src/ctl/meson.build. */
extern const CtlVerbRow *const ctl_verbs[];
