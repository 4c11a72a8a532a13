/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/views/dict.h"

#include "base/parse.h"
#include "conf/utf8.h"

void dict_check(Dict *dict, int r)
{
    if (r < 0 && dict->error == 0)
        dict->error = r;
}

#define PUT(dict, call)                 \
    do {                                \
        if ((dict)->error == 0)         \
            dict_check((dict), (call)); \
    } while (0)

void dict_begin(Dict *dict)
{
    PUT(dict, sd_bus_message_open_container(dict->message, 'a', "{sv}"));
}

void dict_end(Dict *dict)
{
    PUT(dict, sd_bus_message_close_container(dict->message));
}

static void value_begin(Dict *dict, const char *key, const char *signature)
{
    PUT(dict, sd_bus_message_open_container(dict->message, 'e', "sv"));
    PUT(dict, sd_bus_message_append_basic(dict->message, 's', key));
    PUT(dict, sd_bus_message_open_container(dict->message, 'v', signature));
}

static void value_end(Dict *dict)
{
    PUT(dict, sd_bus_message_close_container(dict->message));
    PUT(dict, sd_bus_message_close_container(dict->message));
}

void dict_list_begin(Dict *dict, const char *key)
{
    if (key)
        value_begin(dict, key, "aa{sv}");
    PUT(dict, sd_bus_message_open_container(dict->message, 'a', "a{sv}"));
}

void dict_list_end(Dict *dict, const char *key)
{
    PUT(dict, sd_bus_message_close_container(dict->message));
    if (key)
        value_end(dict);
}

void dict_string(Dict *dict, const char *key, const char *value)
{
    CLEANUP_FREE char *text = utf8_escape_alloc(value);

    if (!text)
        dict_check(dict, -ENOMEM);
    PUT(dict, sd_bus_message_append(dict->message, "{sv}", key, "s", text));
}

void dict_bool(Dict *dict, const char *key, bool value)
{
    PUT(dict, sd_bus_message_append(dict->message, "{sv}", key, "b", (int)value));
}

void dict_i32(Dict *dict, const char *key, int32_t value)
{
    PUT(dict, sd_bus_message_append(dict->message, "{sv}", key, "i", value));
}

void dict_u32(Dict *dict, const char *key, uint32_t value)
{
    PUT(dict, sd_bus_message_append(dict->message, "{sv}", key, "u", value));
}

void dict_u64(Dict *dict, const char *key, uint64_t value)
{
    PUT(dict, sd_bus_message_append(dict->message, "{sv}", key, "t", value));
}

void dict_strings(Dict *dict, const char *key, const char *const *values)
{
    value_begin(dict, key, "as");
    PUT(dict, sd_bus_message_open_container(dict->message, 'a', "s"));
    for (; *values; values++) {
        CLEANUP_FREE char *text = utf8_escape_alloc(*values);

        if (!text)
            dict_check(dict, -ENOMEM);
        PUT(dict, sd_bus_message_append_basic(dict->message, 's', text));
    }
    PUT(dict, sd_bus_message_close_container(dict->message));
    value_end(dict);
}

void dict_numbers(Dict *dict, const char *key, const uint32_t *values, size_t n)
{
    value_begin(dict, key, "au");
    PUT(dict, sd_bus_message_append_array(dict->message, 'u', values, n * sizeof(*values)));
    value_end(dict);
}

void dict_text(Dict *dict, const char *key, const char *value)
{
    PUT(dict, sd_bus_message_append(dict->message, "{sv}", key, "s", value));
}

void dict_cpus(Dict *dict, const char *key, hwloc_const_bitmap_t cpus)
{
    CLEANUP_FREE char *text = cpus ? format_list(cpus, PARSE_CPU_MAX) : NULL;

    if (cpus && !text)
        dict_check(dict, -ENOMEM);
    PUT(dict, sd_bus_message_append(dict->message, "{sv}", key, "s", text ? text : ""));
}

void dict_nodes(Dict *dict, const char *key, const Topology *topology, hwloc_const_bitmap_t nodes)
{
    CLEANUP_BITMAP hwloc_bitmap_t numbers = hwloc_bitmap_alloc();

    dict_check(dict, numbers ? topology_add_node_numbers(topology, nodes, numbers) : -ENOMEM);
    dict_cpus(dict, key, numbers);
}

void dict_node_of(Dict *dict, const char *key, const Topology *topology, CpuIx cpu)
{
    const TopologyCpu *entry = topology_cpu(topology, cpu);

    dict_i32(dict, key, entry && entry->node.i >= 0 ? (int32_t)topology->nodes[entry->node.i].os_index : -1);
}

void dict_counters(Dict *dict, const char *key, const uint64_t *counters, int n, const char *const names[])
{
    value_begin(dict, key, "a{st}");
    PUT(dict, sd_bus_message_open_container(dict->message, 'a', "{st}"));
    for (int i = 0; i < n; i++)
        PUT(dict, sd_bus_message_append(dict->message, "{st}", names[i], counters[i]));
    PUT(dict, sd_bus_message_close_container(dict->message));
    value_end(dict);
}
