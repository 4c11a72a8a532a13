/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The bandwidth of memory modules, from tables made here. */

#include "../machine.h"
#include "topo/build.h"
#include "topo/dmi.h"

#include <stdlib.h>
#include <string.h>

typedef struct Table {
    uint8_t data[4096];
    size_t len;
} Table;

/* Appends a structure of `len` bytes, followed by a string. Returns its bytes. */
static uint8_t *add(Table *table, uint8_t type, uint8_t len)
{
    static const char strings[] = "DIMM A1\0"; /* and the literal's zero: two in all */
    uint8_t *entry = table->data + table->len;

    memset(entry, 0, len);
    entry[0] = type;
    entry[1] = len;
    memcpy(entry + len, strings, sizeof(strings));
    table->len += len + sizeof(strings);
    return entry;
}

static void put(uint8_t *entry, size_t at, unsigned value)
{
    entry[at] = (uint8_t)value;
    entry[at + 1] = (uint8_t)(value >> 8);
}

/* A module of 16 GiB and 64 bits that runs below its rated speed. */
static uint8_t *add_module(Table *table, uint8_t len)
{
    uint8_t *entry = add(table, 17, len);

    put(entry, 0x0A, 64);
    put(entry, 0x0C, 16384);
    put(entry, 0x15, 3200);
    if (len > 0x21)
        put(entry, 0x20, 2933);
    if (len > 0x28)
        entry[0x28] = 3;
    return entry;
}

static uint64_t read_table(const Table *table)
{
    return dmi_memory_mb(table->data, table->len);
}

static void test_modules(void **state)
{
    Table table = {.len = 0};

    assert_int_equal(read_table(&table), 0);
    (void)add(&table, 0, 0x18);
    (void)add_module(&table, 0x54);
    (void)add(&table, 1, 0x1B);
    (void)add_module(&table, 0x54);
    assert_int_equal(read_table(&table), 2 * 2933 * 8);
    put(add_module(&table, 0x54), 0x0C, 0); /* an empty slot */
    add_module(&table, 0x54)[0x28] = 7;     /* not DRAM */
    assert_int_equal(read_table(&table), 2 * 2933 * 8);
    put(add_module(&table, 0x54), 0x20, 0); /* its actual speed is not given */
    (void)add_module(&table, 0x1B);         /* nor in a table as old as that */
    assert_int_equal(read_table(&table), 2 * 2933 * 8 + 2 * 3200 * 8);
    (void)add(&table, 127, 4);
    table.data[table.len++] = 17; /* after the end */
    assert_int_equal(read_table(&table), 2 * 2933 * 8 + 2 * 3200 * 8);
}

static void test_not_told(void **state)
{
    Table table = {.len = 0};
    uint8_t *entry = add_module(&table, 0x54);

    put(entry, 0x20, 0);
    put(entry, 0x15, 0);
    assert_int_equal(read_table(&table), 0);
    put(entry, 0x15, 0xFFFF);
    assert_int_equal(read_table(&table), 0);
    put(entry, 0x15, 3200);
    put(entry, 0x0A, 0xFFFF);
    assert_int_equal(read_table(&table), 0);
    (void)add_module(&table, 0x54); /* known for all modules, or not at all */
    assert_int_equal(read_table(&table), 0);
    put(entry, 0x0A, 64);
    assert_int_equal(read_table(&table), (3200 + 2933) * 8);
}

/* Memory that a hypervisor invents does not count. */
static void test_virtual(void **state)
{
    Table table = {.len = 0};

    (void)add_module(&table, 0x54);
    add(&table, 0, 0x18)[0x13] = 0x10;
    assert_int_equal(read_table(&table), 0);
}

/* A table that is cut off anywhere, or broken, gives nothing, and is not read beyond its end (which the
 * address sanitizer checks). */
static void test_cut_off(void **state)
{
    Table table = {.len = 0};

    (void)add_module(&table, 0x54);
    (void)add_module(&table, 0x54);
    for (size_t len = 0; len <= table.len; len++) {
        uint8_t *copy = malloc(len + !len);

        assert_non_null(copy);
        memcpy(copy, table.data, len);
        assert_int_equal(dmi_memory_mb(copy, len),
                         len % (table.len / 2) ? 0 : len / (table.len / 2) * 2933 * 8);
        free(copy);
    }
    table.data[1] = 3; /* shorter than its header */
    assert_int_equal(read_table(&table), 0);
    table.data[1] = 255;
    assert_int_equal(read_table(&table), 0);
}

/* Divided by where memory is, less a fifth. Not divided when a node has no CPUs, nor when the firmware gives
 * a node's bandwidth itself. */
static void test_divided(void **state)
{
    for (unsigned i = 0; i < 3; i++) {
        CLEANUP(topology_unref_p) Topology *t = test_machine("numa:2 l3:1 core:2 pu:1");

        t->nodes[0].memory_bytes = 3ULL << 30;
        t->nodes[1].memory_bytes = 1ULL << 30;
        t->nodes[1].n_cpus = i == 1 ? 0 : t->nodes[1].n_cpus;
        t->nodes[1].bandwidth_mb = i == 2 ? 30000 : 0;
        build_bandwidth(t, 100000, 8ULL << 30); /* as much is on nodes that may not be used */
        assert_int_equal(t->nodes[0].bandwidth_mb, i == 0 ? 30000 : 0);
        assert_int_equal(t->nodes[1].bandwidth_mb, i == 0 ? 10000 : i == 1 ? 0 : 30000);
    }
}

TEST_MAIN(NULL, NULL, test_modules, test_not_told, test_virtual, test_cut_off, test_divided)
