/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Processes that were assigned to a policy by name, whatever its [Match] sections say, and their descendants. */

#include "base/util.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Processes at a time; some 200 bytes each. Further descendants are matched as if they were not assigned. */
#define ASSIGNMENTS_MAX 16384U

typedef struct Assignment {
    pid_t pid;
    uint64_t start_ticks;
    pid_t group, session; /* process group and session, as last seen */
    char policy[POLICY_NAME_MAX + 1];
    char *stripe; /* operating-system nodes its memory is interleaved over since its start; NULL: none */
} Assignment;

typedef struct Assignments Assignments;

Assignments *assignments_new(void);
Assignments *assignments_free(Assignments *assignments);
DEFINE_CLEANUP(Assignments *, assignments_free)

/* Assigns a process, also anew; an earlier process with its PID is forgotten. Copies the value. Returns 0,
 * -ENOSPC at ASSIGNMENTS_MAX (counted), or -ENOMEM. */
int assignments_set(Assignments *assignments, const Assignment *value);

const Assignment *assignments_find(const Assignments *assignments, pid_t pid, uint64_t start_ticks);

/* The assignment of a process: its own, or else that of its parent, or of the leader of its process group or
 * session, which becomes its own. NULL: none, or no room for one. `who` has all but policy and stripe. */
const Assignment *assignments_inherit(Assignments *assignments, const Assignment *who, pid_t parent);

/* Forgets processes that have ended. A leader is kept while its process group or session has members: until
 * then the kernel does not reuse its PID. */
void assignments_sweep(Assignments *assignments, bool (*lives)(void *userdata, const Assignment *assignment),
                       void *userdata);

size_t assignments_count(const Assignments *assignments);
uint64_t assignments_refused(const Assignments *assignments); /* at ASSIGNMENTS_MAX, since start */

/* Whether anything has changed since the last call. */
bool assignments_changed(Assignments *assignments);
/* Makes assignments_changed() return true once more, because what had changed could not be saved. */
void assignments_touch(Assignments *assignments);

/* All of them as text, malloc'd; NULL: out of memory. */
char *assignments_format(const Assignments *assignments);
/* Adds those of a text. Returns 0, -EINVAL if some lines do not parse (the others were added), -ENOSPC, or
 * -ENOMEM. */
int assignments_parse(Assignments *assignments, const char *text, size_t len);
