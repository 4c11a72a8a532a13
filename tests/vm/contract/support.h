/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the contract tests share: kernel versions, files of the kernel, masks, and child tasks.
 *
 * Masks and lists are 64-bit numbers, which is all a guest needs. Functions that cannot do their work fail
 * the test. Those that return an int return 0, or -errno from the kernel. */

#include "unit-test.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define BIT(n)        (UINT64_C(1) << (n))

/* True when the kernel is of that version or a later one. */
bool kernel_since(unsigned major, unsigned minor);

/* True when cpusets of version 2 behave as on newer kernels: a list can be emptied while the group has tasks,
 * masks widen when the controller is disabled, and the first list after the controller was enabled moves
 * memory in every group. The change is between 6.12 and 7.3, the versions that were tried. */
#define CPUSETS_NEWER (kernel_since(7, 0))

/* Ends the test as skipped, with the reason as a comment before it. */
__attribute__((format(printf, 1, 2), noreturn)) void contract_skip(const char *format, ...);
/* Prints a line about what was seen, for readers of the log. */
__attribute__((format(printf, 1, 2))) void contract_note(const char *format, ...);
/* Skips unless this is a guest of the lab, where tests may take CPUs offline and change settings. */
void need_guest(void);

/*
 * Files of the kernel
 */

#define TEXT_SIZE 65536U

/* The whole text of a file; NULL when it cannot be read. Valid for the next three calls. */
__attribute__((format(printf, 1, 2))) char *file_read(const char *format, ...);
__attribute__((format(printf, 2, 3))) int file_write(const char *text, const char *format, ...);
__attribute__((format(printf, 1, 2))) bool file_exists(const char *format, ...);
/* A number, or a list such as "0-3,7" as bits; an empty list is 0. */
__attribute__((format(printf, 1, 2))) uint64_t file_number(const char *format, ...);
__attribute__((format(printf, 1, 2))) uint64_t file_list(const char *format, ...);
uint64_t list_parse(const char *text);
/* Bits as a list; valid until the next call. */
const char *list_format(uint64_t bits);
/* The number after the first "key" at the start of a line, blanks and colons skipped. False when there is none. */
bool text_number(const char *text, const char *key, int64_t *ret);

unsigned bit_count(uint64_t bits);
unsigned bit_first(uint64_t bits);
unsigned bit_last(uint64_t bits);

/*
 * Tasks
 */

/* The affinity mask as sched_getaffinity(2) shows it. */
uint64_t mask_get(pid_t tid);
int mask_set(pid_t tid, uint64_t mask);

typedef struct TaskStat {
    char state;
    pid_t parent;
    uint32_t flags, threads, processor;
    uint64_t cpu_ticks, start_ticks;
} TaskStat;

/* False when the task is gone. */
bool task_stat(pid_t tid, TaskStat *ret);
/* Run time, waiting time and number of slices of /proc/TID/schedstat. */
bool task_schedstat(pid_t tid, uint64_t ret[3]);

/* Starts a child process that runs `body`. children_end() or the death of the test kills it. */
pid_t child_start(void (*body)(void *), void *userdata);
/* Children with a mask of their own: one that always uses its CPU, and one that is asleep when this returns. */
pid_t child_spin(uint64_t mask);
pid_t child_sleep(uint64_t mask);
void child_end(pid_t pid);
void children_end(void);
/* For cmocka's teardown. */
int children_teardown(void **state);

/* Memory shared with children; zeroed, never freed. */
void *shared_alloc(size_t size);

/* Waits until the condition is true. Returns false after a minute, which is not a measurement: it only ends a
 * wait in vain. */
bool eventually(bool (*condition)(void *), void *userdata);
void nap(void);
