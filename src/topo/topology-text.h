/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The complete text form of a Topology, as records. The text of a World embeds it and so needs no other
 * input. topology_format() is for people; this form can be read back. */

#include "base/record/record.h"
#include "topo/topology.h"

#define TOPOLOGY_TEXT_NODES_MAX 1024U /* the kernel's limit (CONFIG_NODES_SHIFT is at most 10) */
#define TOPOLOGY_TEXT_CPUS_MAX  8192U /* the same (CONFIG_NR_CPUS with MAXSMP) */

/* Writes a "topology" line, then one line per node, CPU and domain. Write errors stay in the stream. */
void topology_write(const Topology *topology, FILE *out);

/* Reads what topology_write() wrote. The reader must be at the "topology" line and is left after the last
 * line of the topology. Returns 0, -EINVAL with reader->error, or -ENOMEM. */
int topology_read(RecordReader *reader, Topology **ret);
