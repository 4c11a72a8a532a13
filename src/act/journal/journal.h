/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The undo journal: whose masks were changed, what they were, and what they were changed to (I3).
 *
 * The file is text, one record a line. Each line is written before the change it describes:
 *
 *   journal version=1 boot="UUID"
 *   process pid=N start=N group=N session=N place=N since=N original=LIST whole=BOOL
 *                                                     the mask its threads had; whole: that is all it may use;
 *                                                     since: when it got our masks
 *   thread pid=N start=N tid=N born=N original=LIST whole=BOOL      one whose mask was another
 *   mask pid=N start=N mask=LIST                               a mask that threads of the process got from us
 *   narrow pid=N start=N tid=N born=N cpu=N ticks=N last=N     see act/masks/passage.h
 *   settled
 *   checked
 *   released pid=N start=N ticks=N                             restored; what is born later is not ours; another
 *                                                     process line begins anew
 *   stranger pid=N start=N                                     its user chose our mask (act/masks/births.c)
 *   fence kind=unit name="x.service" path="/system.slice/x.service" before=LIST memory=BOOL dropin=BOOL inode=N
 *                                                     original CPUs of a whole cgroup; with memory=yes, its nodes
 *   fenced name="x.service" memory=BOOL cpus=LIST              a set that it got from us
 *   unfenced name="x.service" memory=BOOL                      restored
 *   kept                                              all of this is to stay (KeepOnStop=); the last line
 *   unkept                                            revokes "kept", as does any other line
 *
 * A task is identified by its ID and start time, so a reused ID matches nothing. A journal of another boot
 * matches no task at all and is started anew. */

#include "act/act.h"
#include "act/journal/file.h"

#define JOURNAL_VERSION 1U

/* The mask that a task had before us. */
typedef struct JournalOriginal {
    CpuMask mask;
    bool whole; /* all it may use, no choice: restored as all CPUs, to follow its cpuset again */
} JournalOriginal;

/* What is known of a process: 136 bytes, and 8 per mask. Kept after it exits: its children may live. */
typedef struct JournalProcess {
    pid_t pid, pgrp, session;
    uint32_t n_applied;
    uint64_t start_ticks;
    uint64_t released_ticks; /* 0: under our masks */
    uint64_t place;          /* ACT_PLACE_..., or a number for its cgroups */
    uint64_t since_ticks;    /* what was born earlier has no mask from it; 0: not known */
    JournalOriginal original;
    CpuMask *applied; /* every mask its threads got from us */
    CpuMask *cut;     /* those that a cpuset made of others first; for cut.c, not in the file */
    CpuMask cpuset;   /* its cpuset when last compared with its masks; for cut.c, not in the file */
    CpuMask left;     /* what threads restored to all CPUs then had; for restore-threads.c, not in the file */
    uint64_t place_now; /* its place at the start; for lineage.c, not in the file */
    bool selected;      /* to be restored now; for restore.c, not in the file */
    bool stuck;         /* a thread could not be restored; for restore.c, not in the file */
    bool roams;         /* threads restored, children not yet; for release.c and search.c, not in the file */
    bool searched, checked; /* searched for children; its threads are done; for search.c, not in the file */
    uint32_t n_cut;
    pid_t from_pid; /* heir of that entry, restored with it; 0: none. For lineage.c, not in the file */
    uint64_t from_ticks;
    /* The workload that its mask was given to; NULL: not known. Interned, not in the file */
    const char *workload;
} JournalProcess;

typedef struct JournalThread {
    pid_t pid, tid;
    uint64_t start_ticks; /* of the process */
    uint64_t born_ticks;  /* of the thread */
    JournalOriginal original;
} JournalThread;

/* A thread narrowed to one CPU to force it there. */
typedef struct JournalPassage {
    pid_t pid, tid;
    uint64_t start_ticks; /* of the process */
    uint64_t born_ticks;  /* of the thread */
    CpuIx cpu;
    ActBirthMark before;
    bool settled; /* the thread itself is wide again */
} JournalPassage;

/* A process whose user chose a mask that is also one of ours. */
typedef struct JournalStranger {
    pid_t pid;
    uint64_t start_ticks;
} JournalStranger;

/* Limits what a user who pins many processes can make the journal hold. Further ones are judged again at the stop. */
#define JOURNAL_STRANGERS_MAX 4096U

/* A cgroup whose cpuset was changed (act/fence/fence.h). */
typedef struct JournalFence {
    ActFenceKind kind;
    const char *name, *path;
    CpuMask before; /* empty: none of its own, but all of the levels above */
    bool memory;    /* sets are of memory nodes, not of CPUs */
    uint64_t inode; /* of the cgroup's directory; another one is not ours; 0: not known, or a unit */
    bool dropin;    /* a unit with somebody's drop-in for it, which stays (act/fence/dropin.h) */
    CpuMask *given; /* every set it got from us */
    uint32_t n_given;
} JournalFence;

typedef struct Journal {
    JournalFile file;
    char *boot_id;
    InternPool *pool;
    JournalProcess *processes; /* ascending (PID, start) */
    size_t n_processes, processes_capacity;
    JournalThread *threads; /* ascending (PID, TID, born) */
    size_t n_threads, threads_capacity;
    JournalPassage *passages; /* in the order they began, since the last "checked" */
    size_t n_passages, passages_capacity;
    JournalStranger *strangers; /* ascending (PID, start) */
    size_t n_strangers, strangers_capacity;
    JournalFence *fences; /* unordered: there are few */
    size_t n_fences, fences_capacity;
    size_t n_kept; /* processes at the last compaction */
    size_t n_lines;
    bool torn; /* the last line had no end and was dropped */
    bool kept; /* its writer stopped, and it is to stay until the next daemon places */
} Journal;

/* Opens or starts the journal; `root_fd` is for the boot ID. Returns as act_new(). */
int journal_open(const char *path, int root_fd, Journal **ret, char **ret_error);
/* Reads a journal, and changes or creates nothing. Damaged lines are skipped. 0, -ENOENT if there is none, or
 * -errno as above. */
int journal_open_reading(const char *path, int root_fd, Journal **ret, char **ret_error);
Journal *journal_free(Journal *journal);
DEFINE_CLEANUP(Journal *, journal_free)

/* Parses a journal into an empty Journal. 0; ACT_E_CORRUPT with "LINE: expected ..." in *ret_error for the
 * first bad line, all others being taken in; or -ENOMEM. *ret_good: length up to the last line's end.
 * *ret_foreign: it is of another boot, and nothing is taken in. */
int journal_parse(Journal *journal, const char *text, size_t len, size_t *ret_good, bool *ret_foreign,
                  char **ret_error);
/* The text that journal_parse() reads back as the same. Malloc'd, NULL when out of memory. */
char *journal_format(const Journal *journal, size_t *ret_len);

/* A change about to be made. */
typedef struct JournalChange {
    ActProcess process;
    TaskKey task;                  /* one of its threads */
    bool ours;                     /* its present mask is ours, and no original */
    JournalOriginal original;      /* else: its present mask (need not be interned) */
    hwloc_const_bitmap_t mask;     /* its next mask; finite */
    const JournalPassage *passage; /* NULL: not narrowed first */
    uint64_t place, since_ticks;   /* of a process without an entry */
    const TaskKey *own;            /* other threads whose users chose `mask` already */
    size_t n_own;
} JournalChange;

/* Records what is not recorded yet. 0, -ENOMEM, or another -errno of the file; then the change must not be made. */
int journal_note_change(Journal *journal, const JournalChange *change);
/* Records that the thread of the last passage is wide again. */
int journal_note_settled(Journal *journal);
/* Records that tasks born during settled passages were checked, too, and drops these passages. */
int journal_note_checked(Journal *journal);
void journal_drop_settled(Journal *journal);
int journal_note_released(Journal *journal, JournalProcess *process, uint64_t ticks);
/* Does nothing if there are JOURNAL_STRANGERS_MAX. */
int journal_note_stranger(Journal *journal, pid_t pid, uint64_t start_ticks);
/* A process that came into a fence seems to have chosen its CPUs. Once it has a mask from us, it is no
 * stranger any more. */
bool journal_is_stranger(const Journal *journal, pid_t pid, uint64_t start_ticks);

/* Record what is not recorded yet: what a cpuset was, and what it will be. Return as above. */
int journal_note_fence(Journal *journal,
                       const JournalFence *fence); /* strings and `before` need not be interned */
int journal_note_fenced(Journal *journal, const char *name, bool memory, hwloc_const_bitmap_t set);
int journal_note_unfenced(Journal *journal, const char *name, bool memory);
/* NULL: there is none. Valid until the next journal_note_...(). */
JournalFence *journal_fence(const Journal *journal, const char *name, bool memory);

/* Records whether all of this is to stay when its writer is gone. 0 or -errno of the file. */
int journal_note_kept(Journal *journal, bool kept);

/* The entry of this very process, or NULL. Valid until the next journal_note_...(). */
JournalProcess *journal_process(const Journal *journal, pid_t pid, uint64_t start_ticks);
/* The index of the first entry with this PID or a higher one. */
size_t journal_first(const Journal *journal, pid_t pid);
/* Adds a mask to an array of distinct ones. 0 or -ENOMEM. */
int journal_add_mask(CpuMask **masks, uint32_t *n, CpuMask mask);
/* Whether the process got this mask from us, as far as the file says. */
bool journal_is_applied(const JournalProcess *process, hwloc_const_bitmap_t mask);
/* The mask that this thread had before us. */
JournalOriginal journal_original(const Journal *journal, const JournalProcess *process, TaskKey task);

/* Whether so much is useless that journal_compact() is worth its scan. */
bool journal_bloated(const Journal *journal);
/* Drops processes that are released or not among the `n` living ones (ascending PID), and rewrites the file.
 * 0, -ENOMEM, or another -errno, with the file as before. Entries move. */
int journal_compact(Journal *journal, const ActProcess *living, size_t n);
/* Drops everything, since nothing has a mask or cpuset from us any more, and rewrites the file, or truncates
 * it if there is no space. Returns as above. */
int journal_clear(Journal *journal);
