/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "topo/build.h"

#include "base/parse.h"

#include <stdarg.h>
#include <stdio.h>

int build_fail(char **ret_error, int error, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    *ret_error = format_vtext(format, args);
    va_end(args);
    return error;
}

int build_llc_nodes(Topology *topology)
{
    for (uint32_t i = 0; i < topology->n_llcs; i++) {
        int r = topology_cpus_to_nodes(topology, topology->llcs[i].cpus, topology->llcs[i].nodes);

        if (r < 0)
            return r;
    }
    return 0;
}
