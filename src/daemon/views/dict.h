/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Builds the dictionaries of replies and signals. After the first error everything is a no-op, so that a
 * dictionary of thirty keys is thirty lines; check `error` at the end. */

#include "topo/topology.h"

#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

typedef struct Dict {
    sd_bus_message *message;
    int error; /* 0 or the first -errno */
} Dict;

/* Keeps `r` if it is an error, and the first one. */
void dict_check(Dict *dict, int r);

/* One a{sv}: a value of the message, or an element of a list. */
void dict_begin(Dict *dict);
void dict_end(Dict *dict);

/* A list of dictionaries, aa{sv}: as the whole value (key NULL) or under a key. */
void dict_list_begin(Dict *dict, const char *key);
void dict_list_end(Dict *dict, const char *key);

/* Foreign text is escaped (conf/utf8.h); NULL is "". */
void dict_string(Dict *dict, const char *key, const char *value);
void dict_bool(Dict *dict, const char *key, bool value);
void dict_i32(Dict *dict, const char *key, int32_t value);
void dict_u32(Dict *dict, const char *key, uint32_t value);
void dict_u64(Dict *dict, const char *key, uint64_t value);
void dict_strings(Dict *dict, const char *key, const char *const *values);
void dict_numbers(Dict *dict, const char *key, const uint32_t *values, size_t n);

/* The daemon's own text, of several lines: not escaped. */
void dict_text(Dict *dict, const char *key, const char *value);

/* A set of CPUs as a list; NULL is "". */
void dict_cpus(Dict *dict, const char *key, hwloc_const_bitmap_t cpus);
/* A set of NodeIx as a list of operating-system node numbers; NULL is "". */
void dict_nodes(Dict *dict, const char *key, const Topology *topology, hwloc_const_bitmap_t nodes);
/* The operating-system node of a CPU, -1 when there is none. */
void dict_node_of(Dict *dict, const char *key, const Topology *topology, CpuIx cpu);

/* Counters by name, a{st}. */
void dict_counters(Dict *dict, const char *key, const uint64_t *counters, int n, const char *const names[]);
