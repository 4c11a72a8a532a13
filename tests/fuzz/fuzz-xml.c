/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Machines as hwloc's XML: whatever hwloc makes of a file, the Topology made from it is consistent, or it is
 * refused with a sentence. */

#include "fuzz.h"
#include "root.h"
#include "topo/build.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(topology_unref_p) Topology *topology = NULL;
    CLEANUP_FREE char *error = NULL;
    char path[128];
    int r;

    fuzz_root_write("machine.xml", data, size);
    (void)snprintf(path, sizeof(path), "%s/machine.xml", fuzz_root_path());
    r = topology_load(&(TopologyOptions){.xml = path}, &topology, &error);
    if (r < 0 ? !error || strchr(error, '\n') || topology != NULL : topology_check(topology) != 0)
        abort();
    return 0;
}
