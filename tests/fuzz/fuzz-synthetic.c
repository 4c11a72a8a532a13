/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Synthetic descriptions: the distances, and the guard in front of hwloc. hwloc gets what the guard lets
 * through, which must neither take it long nor make it abort. */

#include "fuzz.h"
#include "topo/build.h"

static void load(const char *text)
{
    CLEANUP(topology_unref_p) Topology *topology = NULL;
    CLEANUP_FREE char *error = NULL;
    int r = topology_load(&(TopologyOptions){.synthetic = text}, &topology, &error);

    if (r < 0 ? !error || topology != NULL : topology_check(topology) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = fuzz_text(data, size), *error = NULL;
    Synthetic synthetic = {NULL};

    if (synthetic_parse(text, &synthetic, &error) < 0) {
        /* One sentence, and nothing to free. */
        if (!error || strchr(error, '\n') || synthetic.description || synthetic.distances)
            abort();
        return 0;
    }
    if (error || !synthetic.description || (synthetic.distances != NULL) != (synthetic.n_distances > 0))
        abort();
    for (size_t i = 0; i < synthetic.n_distances; i++)
        if (synthetic.distances[i] < DISTANCE_LOCAL || synthetic.distances[i] > DISTANCE_MAX)
            abort();
    synthetic_done(&synthetic);
    load(text);
    return 0;
}
