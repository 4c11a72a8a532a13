/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A whole restore from a journal that somebody else wrote, on a machine in memory (record.h). */

#include "act/internal.h"
#include "fuzz.h"
#include "record.h"
#include "root.h"

#include <stdio.h>

/* Requests to systemd or cgroups have no effect, or fail. */
static int set_none(void *context, const char *name, hwloc_const_bitmap_t set)
{
    return strlen(name) % 2 ? -EIO : 0;
}

static int result_none(void *context, const char *name)
{
    return strlen(name) % 3 ? -ENOENT : 0;
}

static ActRecord *make_machine(void)
{
    ActRecord *record = act_record_new(8);

    if (!record || !act_record_add_process(record, 90, 1, 90, "0-7") ||
        !act_record_add_process(record, 100, 90, 100, "0-3") || !act_record_clone(record, 100, 101) ||
        !act_record_add_process(record, 200, 90, 100, "1,3"))
        abort();
    act_record_advance(record, 10);
    if (!act_record_fork(record, 100, 300) || !act_record_fork(record, 300, 301))
        abort();
    act_record_set_session(record, 301, 301);
    act_record_exit(record, 300);
    return record;
}

/* Writes the masks of all threads as text. */
static void masks(ActRecord *record, char *ret, size_t size)
{
    static const pid_t tids[] = {90, 100, 101, 200, 301};
    size_t at = 0;

    for (size_t i = 0; i < ARRAY_SIZE(tids); i++)
        at += (size_t)snprintf(ret + at, size - at, "%s;", act_record_mask(record, tids[i]));
}

/* Any file is read, put aside, or refused with a sentence. One restore puts everything back: a second one
 * changes nothing. Threads that the file does not name keep their masks. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const FenceOps ops = {.set = set_none, .result = result_none};
    CLEANUP(act_record_free_p) ActRecord *record = make_machine();
    CLEANUP(act_free_p) Act *act = NULL;
    CLEANUP_FREE char *error = NULL, *path = NULL;
    char once[256], twice[256];

    /* No cgroups, no service manager, and always the same boot id. */
    fuzz_root_write("proc/sys/kernel/random/boot_id", "boot\n", 5);
    fuzz_root_write("journal", data, size);
    if (asprintf(&path, "%s/journal", fuzz_root_path()) < 0)
        return 0;
    if (act_new(&act_ops_record, record, fuzz_root(), path, &act, &error) < 0 || !act) {
        if (!error || strchr(error, '\n'))
            abort();
        return 0;
    }
    for (ActFenceKind kind = 0; kind < ACT_FENCE_MAX; kind++) {
        fences_set_ops(act->fences, kind, false, &ops, NULL);
        fences_set_ops(act->fences, kind, true, &ops, NULL);
    }
    if (act_restore(act, NULL, NULL, NULL) != 0)
        return 0;
    masks(record, once, sizeof(once));
    if (!memmem(data, size, "pid=90", 6) && strncmp(once, "0-7;", 4) != 0)
        abort();
    if (act_restore(act, NULL, NULL, NULL) != 0)
        abort();
    masks(record, twice, sizeof(twice));
    if (strcmp(once, twice) != 0)
        abort();
    return 0;
}
