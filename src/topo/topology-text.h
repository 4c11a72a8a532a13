/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The complete text form of a Topology, as records: what a World's text embeds, so that it needs no other input.
 * topology_format() is for reading, this is for reading back. */

#include "base/record/record.h"
#include "topo/topology.h"

#define TOPOLOGY_TEXT_NODES_MAX 1024U /* as many as the kernel can have (CONFIG_NODES_SHIFT is at most 10) */
#define TOPOLOGY_TEXT_CPUS_MAX  8192U /* the same (CONFIG_NR_CPUS, MAXSMP) */

/* Writes a "topology" line, then one per node, CPU and domain. Errors stay in the stream. */
void topology_write(const Topology *topology, FILE *out);

/* Reads what topology_write() wrote, from a reader that stands at the "topology" line, and leaves it behind the last
 * line that belongs to it. Returns 0, -EINVAL with reader->error, or -ENOMEM. */
int topology_read(RecordReader *reader, Topology **ret);
