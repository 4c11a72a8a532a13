/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* An assigned process is known by PID and start time. Its descendants are inferred, because the kernel does not name
 * them: from the parent, or if that ended before anything looked, from the process group or session that it had begun.
 * A grandchild is missed if its parent began neither and lived for less than the time between two discoveries. */

#include "daemon/tables/assignments.h"

#include "base/parse.h"
#include "base/record/record.h"

#include <string.h>
#include <uthash.h>

typedef struct Entry {
    Assignment value;
    bool kept;
    UT_hash_handle hh; /* by value.pid: a PID names one process at a time */
} Entry;

struct Assignments {
    Entry *by_pid;
    uint64_t n_refused;
    bool changed;
};

Assignments *assignments_new(void)
{
    return calloc(1, sizeof(Assignments));
}

static void entry_drop(Assignments *assignments, Entry *entry)
{
    HASH_DEL(assignments->by_pid, entry);
    free(entry->value.stripe);
    free(entry);
    assignments->changed = true;
}

Assignments *assignments_free(Assignments *assignments)
{
    Entry *entry, *next;

    if (!assignments)
        return NULL;
    HASH_ITER (hh, assignments->by_pid, entry, next)
        entry_drop(assignments, entry);
    free(assignments);
    return NULL;
}

static Entry *entry_find(const Assignments *assignments, pid_t pid)
{
    Entry *entry = NULL;

    HASH_FIND(hh, assignments->by_pid, &pid, sizeof(pid), entry);
    return entry;
}

/* Adds an entry with only a PID. */
static int entry_add(Assignments *assignments, pid_t pid, Entry **ret)
{
    Entry *entry;

    if (HASH_COUNT(assignments->by_pid) >= ASSIGNMENTS_MAX) {
        assignments->n_refused++;
        return -ENOSPC;
    }
    entry = calloc(1, sizeof(*entry));
    if (!entry)
        return -ENOMEM;
    entry->value.pid = pid;
    HASH_ADD(hh, assignments->by_pid, value.pid, sizeof(entry->value.pid), entry);
    if (!entry->hh.tbl) {
        free(entry);
        return -ENOMEM;
    }
    *ret = entry;
    return 0;
}

int assignments_set(Assignments *assignments, const Assignment *value)
{
    CLEANUP_FREE char *stripe = value->stripe ? strdup(value->stripe) : NULL;
    Entry *entry = entry_find(assignments, value->pid);
    int r = 0;

    if (value->stripe && !stripe)
        return -ENOMEM;
    if (!entry)
        r = entry_add(assignments, value->pid, &entry);
    if (r < 0)
        return r;
    free(entry->value.stripe);
    entry->value = *value;
    entry->value.stripe = TAKE_PTR(stripe);
    assignments->changed = true;
    return 0;
}

const Assignment *assignments_find(const Assignments *assignments, pid_t pid, uint64_t start_ticks)
{
    const Entry *entry = entry_find(assignments, pid);

    return entry && entry->value.start_ticks == start_ticks ? &entry->value : NULL;
}

const Assignment *assignments_inherit(Assignments *assignments, const Assignment *who, pid_t parent)
{
    const pid_t from[] = {parent, who->group, who->session};
    Entry *entry = entry_find(assignments, who->pid);

    if (entry && entry->value.start_ticks == who->start_ticks) {
        entry->value.group = who->group;
        entry->value.session = who->session;
        return &entry->value;
    }
    if (entry) /* of an earlier process with this PID */
        entry_drop(assignments, entry);
    for (size_t i = 0; i < ARRAY_SIZE(from); i++) {
        const Entry *ancestor = entry_find(assignments, from[i]);

        if (ancestor && ancestor->value.start_ticks <= who->start_ticks) {
            Assignment value = ancestor->value;

            value.pid = who->pid;
            value.start_ticks = who->start_ticks;
            value.group = who->group;
            value.session = who->session;
            return assignments_set(assignments, &value) == 0
                       ? assignments_find(assignments, who->pid, who->start_ticks)
                       : NULL;
        }
    }
    return NULL;
}

static void keep(Entry *entry)
{
    if (entry)
        entry->kept = true;
}

void assignments_sweep(Assignments *assignments, bool (*lives)(void *userdata, const Assignment *assignment),
                       void *userdata)
{
    Entry *entry, *next;

    HASH_ITER (hh, assignments->by_pid, entry, next)
        entry->kept = false;
    HASH_ITER (hh, assignments->by_pid, entry, next) {
        if (!lives(userdata, &entry->value))
            continue;
        keep(entry);
        keep(entry_find(assignments, entry->value.group));
        keep(entry_find(assignments, entry->value.session));
    }
    HASH_ITER (hh, assignments->by_pid, entry, next)
        if (!entry->kept)
            entry_drop(assignments, entry);
}

size_t assignments_count(const Assignments *assignments)
{
    return HASH_COUNT(assignments->by_pid);
}

uint64_t assignments_refused(const Assignments *assignments)
{
    return assignments->n_refused;
}

bool assignments_changed(Assignments *assignments)
{
    bool changed = assignments->changed;

    assignments->changed = false;
    return changed;
}

void assignments_touch(Assignments *assignments)
{
    assignments->changed = true;
}

/* Text */

static const RecordField fields[] = {
    {"pid", RECORD_INDEX, offsetof(Assignment, pid), true},
    {"start", RECORD_U64, offsetof(Assignment, start_ticks), true},
    {"group", RECORD_INDEX, offsetof(Assignment, group)},
    {"session", RECORD_INDEX, offsetof(Assignment, session)},
    {"policy", RECORD_CHARS, offsetof(Assignment, policy), true, POLICY_NAME_MAX + 1},
    {"stripe", RECORD_TEXT, offsetof(Assignment, stripe)},
};

static int print(FILE *out, const void *object)
{
    const Assignments *assignments = object;

    for (const Entry *entry = assignments->by_pid; entry; entry = entry->hh.next)
        record_write(out, "process", fields, ARRAY_SIZE(fields), &entry->value);
    return 0;
}

char *assignments_format(const Assignments *assignments)
{
    return format_printed(print, assignments, NULL);
}

static int parse_line(Assignments *assignments, RecordReader *reader)
{
    Assignment value = {0};
    int r = record_is(reader, "process") ? record_read(reader, fields, ARRAY_SIZE(fields), &value)
                                         : record_expected(reader, "\"process\"");

    if (r == 0 && value.pid <= 0)
        r = record_expected(reader, "a PID");
    if (r == 0)
        r = assignments_set(assignments, &value);
    free(value.stripe);
    return r;
}

int assignments_parse(Assignments *assignments, const char *text, size_t len)
{
    RecordReader reader;
    size_t whole = len;
    bool damaged;
    int r;

    while (whole > 0 && text[whole - 1] != '\n')
        whole--;
    damaged = whole < len; /* a torn line might name another process or policy */
    r = record_reader_init(&reader, text, whole);
    while (r == 0) {
        r = record_next(&reader);
        if (r == 0 && !reader.kind)
            break;
        if (r == 0)
            r = parse_line(assignments, &reader);
        if (r == -EINVAL) {
            damaged = true;
            r = 0;
        }
    }
    record_reader_done(&reader);
    return r == 0 && damaged ? -EINVAL : r;
}
