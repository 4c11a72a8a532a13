/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the kernel does with masks, as far as this room relies on it. A requested mask is cut by the cpuset and, since
 * Linux 6.2, remembered for when the cpuset changes. An empty result is EINVAL. A mask is shown without its offline
 * CPUs. A child inherits its creator's mask. The tests of act_ops_affinity check these against a real kernel. */

#include "record.h"

#include "base/parse.h"

#include <stdio.h>
#include <string.h>

typedef struct RecordThread {
    TaskKey key;
    ActProcess process; /* the process of the thread */
    hwloc_bitmap_t asked, mask, cpuset;
    ActResult failure;
    unsigned n_failures; /* failures still to come */
    bool first;
    ActForkState fork;
    uint64_t place;
} RecordThread;

struct ActRecord {
    RecordThread *threads; /* in order of creation */
    size_t n_threads, threads_capacity;
    hwloc_bitmap_t online, isolated, seen;
    uint64_t ticks;
    pid_t last;
    ActRecordHook hook;
    void *userdata;
    FILE *log;
    char *log_text;
    size_t log_len;
    char shown[256];
};

ActRecord *act_record_new(unsigned n_cpus)
{
    CLEANUP(act_record_free_p) ActRecord *record = calloc(1, sizeof(*record));

    if (!record)
        return NULL;
    record->ticks = 1000;
    record->online = hwloc_bitmap_alloc();
    record->isolated = hwloc_bitmap_alloc();
    record->seen = hwloc_bitmap_alloc();
    record->log = open_memstream(&record->log_text, &record->log_len);
    if (!record->online || !record->isolated || !record->seen || !record->log ||
        hwloc_bitmap_set_range(record->online, 0, (int)n_cpus - 1) < 0)
        return NULL;
    return TAKE_PTR(record);
}

static void drop(ActRecord *record, size_t i)
{
    hwloc_bitmap_free(record->threads[i].asked);
    hwloc_bitmap_free(record->threads[i].mask);
    hwloc_bitmap_free(record->threads[i].cpuset);
    memmove(&record->threads[i], &record->threads[i + 1],
            (record->n_threads - i - 1) * sizeof(*record->threads));
    record->n_threads--;
}

ActRecord *act_record_free(ActRecord *record)
{
    if (!record)
        return NULL;
    while (record->n_threads > 0)
        drop(record, record->n_threads - 1);
    free(record->threads);
    hwloc_bitmap_free(record->online);
    hwloc_bitmap_free(record->isolated);
    hwloc_bitmap_free(record->seen);
    if (record->log)
        (void)fclose(record->log);
    free(record->log_text);
    free(record);
    return NULL;
}

void act_record_set_hook(ActRecord *record, ActRecordHook hook, void *userdata)
{
    record->hook = hook;
    record->userdata = userdata;
}

void act_record_advance(ActRecord *record, uint64_t ticks)
{
    record->ticks += ticks;
}

static RecordThread *find(const ActRecord *record, pid_t tid)
{
    for (size_t i = 0; i < record->n_threads; i++)
        if (record->threads[i].key.tid == tid)
            return &record->threads[i];
    return NULL;
}

/* Finds a thread by pid, tid and start time. As in /proc, a pid equal to the tid stands for the thread's process. */
static RecordThread *find_task(const ActRecord *record, TaskKey task)
{
    RecordThread *thread = find(record, task.tid);

    if (!thread || thread->key.start_ticks != task.start_ticks ||
        (task.pid != thread->key.pid && task.pid != task.tid))
        return NULL;
    return thread;
}

static bool add(ActRecord *record, pid_t tid, const ActProcess *process, hwloc_const_bitmap_t asked,
                hwloc_const_bitmap_t mask, hwloc_const_bitmap_t cpuset)
{
    RecordThread thread = {
        .key = {.pid = process->pid, .tid = tid, .start_ticks = record->ticks},
        .process = *process,
        .asked = hwloc_bitmap_dup(asked),
        .mask = hwloc_bitmap_dup(mask),
        .cpuset = hwloc_bitmap_dup(cpuset),
        .place = ACT_PLACE_ROOT,
    };

    if (!thread.asked || !thread.mask || !thread.cpuset || find(record, tid) ||
        !GROW(record->threads, record->threads_capacity, record->n_threads + 1)) {
        hwloc_bitmap_free(thread.asked);
        hwloc_bitmap_free(thread.mask);
        hwloc_bitmap_free(thread.cpuset);
        return false;
    }
    record->threads[record->n_threads++] = thread;
    record->last = MAX(record->last, tid);
    return true;
}

bool act_record_add_process(ActRecord *record, pid_t pid, pid_t parent, pid_t pgrp, const char *mask)
{
    ActProcess process = {
        .pid = pid, .parent = parent, .pgrp = pgrp, .session = pgrp, .start_ticks = record->ticks};
    CLEANUP_BITMAP hwloc_bitmap_t set = hwloc_bitmap_alloc();

    return set && parse_list(mask, PARSE_CPU_MAX, set) == 0 &&
           add(record, pid, &process, set, set, record->online);
}

bool act_record_clone(ActRecord *record, pid_t creator, pid_t tid)
{
    const RecordThread *from = find(record, creator);

    return from && add(record, tid, &from->process, from->asked, from->mask, from->cpuset);
}

bool act_record_fork(ActRecord *record, pid_t creator, pid_t pid)
{
    const RecordThread *from = find(record, creator);
    ActProcess process;
    uint64_t place;

    if (!from)
        return false;
    process = from->process;
    process.parent = from->process.pid;
    process.pid = pid;
    process.start_ticks = record->ticks;
    place = from->place;
    if (!add(record, pid, &process, from->asked, from->mask, from->cpuset))
        return false;
    act_record_set_place(record, pid, place);
    return true;
}

bool act_record_isolate(ActRecord *record, const char *cpus)
{
    return parse_list(cpus, PARSE_CPU_MAX, record->isolated) == 0;
}

bool act_record_set_online(ActRecord *record, const char *cpus)
{
    return parse_list(cpus, PARSE_CPU_MAX, record->online) == 0;
}

bool act_record_set_cpuset(ActRecord *record, pid_t pid, const char *cpuset)
{
    for (size_t i = 0; i < record->n_threads; i++) {
        RecordThread *thread = &record->threads[i];

        if (thread->key.pid != pid)
            continue;
        if (parse_list(cpuset, PARSE_CPU_MAX, thread->cpuset) < 0 ||
            hwloc_bitmap_and(thread->mask, thread->asked, thread->cpuset) < 0)
            return false;
        if (hwloc_bitmap_iszero(thread->mask) && hwloc_bitmap_copy(thread->mask, thread->cpuset) < 0)
            return false;
    }
    return true;
}

void act_record_set_session(ActRecord *record, pid_t pid, pid_t session)
{
    for (size_t i = 0; i < record->n_threads; i++)
        if (record->threads[i].key.pid == pid)
            record->threads[i].process.pgrp = record->threads[i].process.session = session;
}

void act_record_set_exiting(ActRecord *record, pid_t pid)
{
    for (size_t i = 0; i < record->n_threads; i++)
        if (record->threads[i].key.pid == pid)
            record->threads[i].process.ended = true;
}

void act_record_set_place(ActRecord *record, pid_t pid, uint64_t place)
{
    for (size_t i = 0; i < record->n_threads; i++)
        if (record->threads[i].key.pid == pid)
            record->threads[i].place = place;
}

void act_record_set_first(ActRecord *record, pid_t pid)
{
    RecordThread *thread = find(record, pid);

    if (thread)
        thread->first = true;
}

void act_record_detach(ActRecord *record, pid_t pid)
{
    act_record_set_session(record, pid, pid);
    for (size_t i = 0; i < record->n_threads; i++)
        if (record->threads[i].key.pid == pid)
            record->threads[i].process.parent = 1;
}

void act_record_exit(ActRecord *record, pid_t tid)
{
    for (size_t i = record->n_threads; i-- > 0;)
        if (record->threads[i].key.tid == tid || record->threads[i].key.pid == tid)
            drop(record, i);
    for (size_t i = 0; i < record->n_threads; i++)
        if (record->threads[i].process.parent == tid)
            record->threads[i].process.parent = 1;
}

bool act_record_pin(ActRecord *record, pid_t tid, const char *mask)
{
    RecordThread *thread = find(record, tid);

    return thread && parse_list(mask, PARSE_CPU_MAX, thread->mask) == 0 &&
           hwloc_bitmap_copy(thread->asked, thread->mask) == 0;
}

void act_record_set_fork(ActRecord *record, pid_t tid, ActForkState state)
{
    RecordThread *thread = find(record, tid);

    if (thread)
        thread->fork = state;
}

void act_record_run_on(ActRecord *record, pid_t tid, int32_t cpu)
{
    RecordThread *thread = find(record, tid);

    if (thread)
        thread->process.cpu = cpu;
}

void act_record_fail(ActRecord *record, pid_t tid, ActResult result, unsigned times)
{
    RecordThread *thread = find(record, tid);

    if (thread) {
        thread->failure = result;
        thread->n_failures = times;
    }
}

const char *act_record_mask(ActRecord *record, pid_t tid)
{
    const RecordThread *thread = find(record, tid);
    CLEANUP_BITMAP hwloc_bitmap_t seen = hwloc_bitmap_alloc();
    CLEANUP_FREE char *text = NULL;

    if (!thread)
        return "gone";
    if (seen && hwloc_bitmap_and(seen, thread->mask, record->online) == 0)
        text = format_list(seen, PARSE_CPU_MAX);
    (void)snprintf(record->shown, sizeof(record->shown), "%s", text ? text : "out of memory");
    return record->shown;
}

const char *act_record_log(const ActRecord *record)
{
    (void)fflush(record->log);
    return record->log_text;
}

TaskKey act_record_key(const ActRecord *record, pid_t tid)
{
    const RecordThread *thread = find(record, tid);

    return thread ? thread->key : (TaskKey){0};
}

/* The operations */

static void call_hook(ActRecord *record, ActRecordOp op, TaskKey task)
{
    if (record->hook)
        record->hook(record->userdata, record, op, task);
}

static int record_get_online(void *context, hwloc_bitmap_t ret)
{
    const ActRecord *record = context;

    return hwloc_bitmap_copy(ret, record->online) < 0 ? -ENOMEM : 0;
}

static int record_get_isolated(void *context, hwloc_bitmap_t ret)
{
    const ActRecord *record = context;

    return hwloc_bitmap_copy(ret, record->isolated) < 0 ? -ENOMEM : 0;
}

static int record_get_cpuset(void *context, pid_t pid, hwloc_bitmap_t ret)
{
    const RecordThread *thread = find(context, pid);

    if (!thread)
        return -ENOENT;
    return hwloc_bitmap_copy(ret, thread->cpuset) < 0 ? -ENOMEM : 0;
}

static int record_get_mask(void *context, TaskKey task, hwloc_bitmap_t ret)
{
    ActRecord *record = context;
    const RecordThread *thread;

    call_hook(record, ACT_RECORD_GET_MASK, task);
    thread = find_task(record, task);
    if (!thread)
        return ACT_E_GONE;
    return hwloc_bitmap_and(ret, thread->mask, record->online) < 0 ? -ENOMEM : 0;
}

/* Whether the walk is to visit the thread, by the mask that the kernel shows. */
static bool is_wanted(ActRecord *record, const RecordThread *thread,
                      bool (*wants)(void *userdata, hwloc_const_bitmap_t mask), void *userdata)
{
    return hwloc_bitmap_and(record->seen, thread->mask, record->online) == 0 && wants(userdata, record->seen);
}

/* Sets one mask as the kernel does. */
static int set_one(ActRecord *record, TaskKey task, hwloc_const_bitmap_t mask)
{
    RecordThread *thread = find_task(record, task);
    CLEANUP_BITMAP hwloc_bitmap_t got = NULL;

    if (!thread)
        return ACT_E_GONE;
    if (thread->n_failures > 0) {
        thread->n_failures--;
        return thread->failure;
    }
    got = hwloc_bitmap_alloc();
    if (!got || hwloc_bitmap_and(got, mask, thread->cpuset) < 0)
        return -ENOMEM;
    if (!hwloc_bitmap_intersects(got, record->online))
        return ACT_E_REFUSED;
    if (hwloc_bitmap_copy(thread->asked, mask) < 0 || hwloc_bitmap_copy(thread->mask, got) < 0 ||
        hwloc_bitmap_and(got, mask, record->online) < 0)
        return -ENOMEM;
    return hwloc_bitmap_isincluded(got, thread->mask) ? 0 : ACT_E_CUT;
}

static void log_set(ActRecord *record, TaskKey task, hwloc_const_bitmap_t via, hwloc_const_bitmap_t mask)
{
    CLEANUP_FREE char *mask_text = NULL, *via_text = via ? format_list(via, PARSE_CPU_MAX) : NULL;

    if (hwloc_bitmap_isfull(mask))
        mask_text = strdup("all");
    else
        mask_text = format_list(mask, PARSE_CPU_MAX);
    (void)fprintf(record->log, "%d %s%s%s\n", task.tid, mask_text ? mask_text : "?", via_text ? " via " : "",
                  via_text ? via_text : "");
}

static int record_set_mask(void *context, TaskKey task, hwloc_const_bitmap_t via, hwloc_const_bitmap_t mask)
{
    ActRecord *record = context;
    int r;

    if (via) {
        call_hook(record, ACT_RECORD_SET_VIA, task);
        r = set_one(record, task, via);
        if (r != 0)
            return r;
    }
    call_hook(record, ACT_RECORD_SET_MASK, task);
    r = set_one(record, task, mask);
    if (r == 0 || r == ACT_E_CUT)
        log_set(record, task, via, mask);
    return r;
}

static int record_list_threads(void *context, pid_t pid, uint64_t start_ticks, TaskKey **ret, size_t *ret_n)
{
    ActRecord *record = context;
    CLEANUP_FREE TaskKey *keys = NULL;
    size_t n = 0, capacity = 0;

    call_hook(record, ACT_RECORD_LIST_THREADS, (TaskKey){.pid = pid, .start_ticks = start_ticks});
    for (size_t i = 0; i < record->n_threads; i++) {
        const RecordThread *thread = &record->threads[i];

        if (thread->key.pid != pid || thread->process.start_ticks != start_ticks)
            continue;
        if (APPEND(keys, capacity, n, thread->key) < 0)
            return -ENOMEM;
    }
    if (n == 0)
        return ACT_E_GONE;
    *ret = TAKE_PTR(keys);
    *ret_n = n;
    return 0;
}

static int record_walk_threads(void *context, ActThreadWalk *walk)
{
    ActRecord *record = context;
    size_t n_met = 0, n_all = 0;

    call_hook(record, ACT_RECORD_LIST_THREADS, (TaskKey){.pid = walk->pid, .start_ticks = walk->start_ticks});
    for (size_t i = 0; i < record->n_threads; i++)
        n_all += record->threads[i].key.pid == walk->pid &&
                 record->threads[i].process.start_ticks == walk->start_ticks;
    walk->more = false;
    if (n_all == 0)
        return ACT_E_GONE;
    for (; walk->at < record->n_threads; walk->at++) {
        const RecordThread *thread = &record->threads[walk->at];

        if (thread->key.pid != walk->pid || thread->process.start_ticks != walk->start_ticks)
            continue;
        walk->more = walk->n_max > 0 && n_met == walk->n_max;
        if (walk->more)
            return 0;
        n_met++;
        if (is_wanted(record, thread, walk->wants, walk->userdata))
            walk->visit(walk->userdata, thread->key);
    }
    walk->at = 0;
    return 0;
}

static int compare_pids(const void *a, const void *b)
{
    const ActProcess *x = a, *y = b;

    return (x->pid > y->pid) - (x->pid < y->pid);
}

static int record_list_processes(void *context, ActProcess **ret, size_t *ret_n)
{
    ActRecord *record = context;
    CLEANUP_FREE ActProcess *processes = NULL;
    size_t n = 0, capacity = 0;

    call_hook(record, ACT_RECORD_LIST_PROCESSES, (TaskKey){0});
    for (size_t i = 0; i < record->n_threads; i++) {
        const RecordThread *thread = &record->threads[i];

        if (thread->key.tid != thread->key.pid)
            continue;
        if (APPEND(processes, capacity, n, thread->process) < 0)
            return -ENOMEM;
    }
    if (n > 0)
        qsort(processes, n, sizeof(*processes), compare_pids);
    *ret = TAKE_PTR(processes);
    *ret_n = n;
    return 0;
}

static int record_walk(void *context, ActWalk *walk)
{
    ActRecord *record = context;

    walk->n_gone = 0;
    for (size_t i = 0; i < record->n_threads; i++) {
        const RecordThread *thread = &record->threads[i];

        if (thread->key.tid == thread->key.pid && is_wanted(record, thread, walk->wants, walk->userdata))
            walk->visit(walk->userdata, &thread->process);
    }
    return 0;
}

static int record_may_fork(void *context, TaskKey task, ActFork *ret)
{
    const RecordThread *thread;

    call_hook(context, ACT_RECORD_MAY_FORK, task);
    thread = find_task(context, task);
    if (!thread)
        return ACT_E_GONE;
    *ret = (ActFork){.state = thread->fork, .most_ticks = 1};
    return 0;
}

static bool record_waits_in_fork(void *context, TaskKey task)
{
    const RecordThread *thread = find_task(context, task);

    return thread && thread->fork == ACT_FORK_INSIDE;
}

static int record_read_process(void *context, pid_t pid, ActProcess *ret)
{
    const RecordThread *thread = find(context, pid);

    if (!thread)
        return ACT_E_GONE;
    *ret = thread->process;
    ret->pid = pid;
    ret->start_ticks = thread->key.start_ticks;
    return 0;
}

static int record_get_place(void *context, pid_t pid, uint64_t *ret)
{
    const RecordThread *thread;

    call_hook(context, ACT_RECORD_GET_PLACE, (TaskKey){.pid = pid, .tid = pid});
    thread = find(context, pid);
    if (!thread || thread->process.ended)
        return ACT_E_GONE;
    *ret = thread->place;
    return 0;
}

static bool record_is_first(void *context, pid_t pid)
{
    const RecordThread *thread = find(context, pid);

    return thread && thread->first;
}

static int record_birth_mark(void *context, ActBirthMark *ret)
{
    const ActRecord *record = context;

    *ret = (ActBirthMark){.ticks = record->ticks, .last = record->last};
    return 0;
}

const ActOps act_ops_record = {
    .changes = true,
    .get_online = record_get_online,
    .get_isolated = record_get_isolated,
    .get_cpuset = record_get_cpuset,
    .get_mask = record_get_mask,
    .set_mask = record_set_mask,
    .list_threads = record_list_threads,
    .walk_threads = record_walk_threads,
    .list_processes = record_list_processes,
    .walk = record_walk,
    .read_process = record_read_process,
    .get_place = record_get_place,
    .is_first = record_is_first,
    .birth_mark = record_birth_mark,
    .may_fork = record_may_fork,
    .waits_in_fork = record_waits_in_fork,
};
