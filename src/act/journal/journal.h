/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The undo journal: whose masks were changed, what they were, and what they were changed to (I3).
 *
 * The file is text, one record a line, each written before the change it speaks of:
 *
 *   journal version=1 boot="UUID"
 *   process pid=N start=N group=N session=N place=N since=N original=LIST whole=BOOL
 *                                                     the mask its threads had; whole: that is all it may use; since:
 *                                                     under our masks
 *   thread pid=N start=N tid=N born=N original=LIST whole=BOOL      one whose mask was another
 *   mask pid=N start=N mask=LIST                               a mask threads of the process got from us
 *   narrow pid=N start=N tid=N born=N cpu=N ticks=N last=N     see act/masks/passage.h
 *   settled
 *   checked
 *   released pid=N start=N ticks=N                             put back; what was born later is not ours
 *   stranger pid=N start=N                                     has a mask of ours from its user (act/masks/births.c)
 *   fence kind=unit name="x.service" path="/system.slice/x.service" before=LIST memory=BOOL dropin=BOOL inode=N
 *                                                     CPUs of a whole cgroup as they were; nodes, with memory=yes
 *   fenced name="x.service" memory=BOOL cpus=LIST              those it got from us
 *   unfenced name="x.service" memory=BOOL                      put back
 *   kept                                              everything before is to stay (KeepOnStop=): a daemon's last line
 *   unkept                                            no longer, and so is any other line after it
 *
 * A task is named by its number and its start time, so a number used again names nobody. A journal of another boot
 * names nobody at all and is started anew. */

#include "act/act.h"
#include "act/journal/file.h"

#define JOURNAL_VERSION 1U

/* A mask as it was before us. */
typedef struct JournalOriginal {
    CpuMask mask;
    bool whole; /* all it may use, so no choice: put back as such, that it may follow its cpuset again */
} JournalOriginal;

/* What we know of a process, 120 bytes and 8 per mask; kept after it ended, because its children may live. */
typedef struct JournalProcess {
    pid_t pid, pgrp, session;
    uint32_t n_applied;
    uint64_t start_ticks;
    uint64_t released_ticks; /* 0: under our masks */
    uint64_t place;          /* ACT_PLACE_..., or its cgroups */
    uint64_t since_ticks;    /* what was born before has no mask from it; 0: not known */
    JournalOriginal original;
    CpuMask *applied; /* every mask its threads got from us */
    CpuMask cpuset;   /* when its masks were last compared with it; of cut.c, not in the file */
    CpuMask
        left; /* what threads had that were put back to all CPUs, the last time; of restore.c, not in the file */
    bool selected; /* to be put back now; of restore.c, not in the file */
    bool roams;    /* its threads were put back, its children are yet to be; of execute.c, not in the file */
    bool searched, checked; /* that has begun, and its threads are done; of search.c, not in the file */
    pid_t from_pid; /* an heir of that entry, and put back with it; 0: not. Of lineage.c, not in the file */
    uint64_t from_ticks;
    const char *workload; /* of whom its mask was given to; NULL: not known. Interned, not in the file */
} JournalProcess;

typedef struct JournalThread {
    pid_t pid, tid;
    uint64_t start_ticks; /* of the process */
    uint64_t born_ticks;  /* of the thread */
    JournalOriginal original;
} JournalThread;

/* A thread that was narrowed to one CPU to force it there. */
typedef struct JournalPassage {
    pid_t pid, tid;
    uint64_t start_ticks; /* of the process */
    uint64_t born_ticks;  /* of the thread */
    CpuIx cpu;
    ActBirthMark before;
    bool settled; /* the thread itself is wide again */
} JournalPassage;

/* One that has a mask of ours, and not from us. */
typedef struct JournalStranger {
    pid_t pid;
    uint64_t start_ticks;
} JournalStranger;

/* A bound on what somebody who pins many processes can make us keep; further ones are judged again when we stop. */
#define JOURNAL_STRANGERS_MAX 4096U

/* A cgroup whose cpuset was changed (act/fence/fence.h). */
typedef struct JournalFence {
    ActFenceKind kind;
    const char *name, *path;
    CpuMask before; /* empty: it had none of its own, but all of the levels above */
    bool memory;    /* sets are of nodes, not of CPUs */
    uint64_t inode; /* of the cgroup's directory; another one's is not ours; 0: not known, or a unit */
    bool dropin;    /* a unit that had a drop-in of somebody's for it, which stays (act/fence/dropin.h) */
    CpuMask *given; /* every set it got from us */
    uint32_t n_given;
} JournalFence;

typedef struct Journal {
    JournalFile file;
    char *boot_id;
    InternPool *pool;
    JournalProcess *processes; /* ascending (pid, start) */
    size_t n_processes, processes_capacity;
    JournalThread *threads; /* ascending (pid, tid, born) */
    size_t n_threads, threads_capacity;
    JournalPassage *passages; /* in the order they were begun, since the last "checked" */
    size_t n_passages, passages_capacity;
    JournalStranger *strangers; /* ascending (pid, start) */
    size_t n_strangers, strangers_capacity;
    JournalFence *fences; /* in no order: there are few */
    size_t n_fences, fences_capacity;
    size_t n_kept; /* processes at the last compaction */
    size_t n_lines;
    bool torn; /* the last line had no end and was dropped */
    bool kept; /* the daemon that wrote it stopped, and means it to stay until the next one places */
} Journal;

/* Opens or starts the journal; `root_fd` is for the boot id. Return as act_new(). */
int journal_open(const char *path, int root_fd, Journal **ret, char **ret_error);
/* Reads a journal and neither changes nor makes anything. What is damaged is left out. 0, -ENOENT
 * when there is none, or -errno as above. */
int journal_open_reading(const char *path, int root_fd, Journal **ret, char **ret_error);
Journal *journal_free(Journal *journal);
DEFINE_CLEANUP(Journal *, journal_free)

/* Reads the text of a journal into an empty Journal. 0; ACT_E_CORRUPT with "LINE: expected ..." in *ret_error about the
 * first bad line, everything else is taken in; or -ENOMEM. *ret_good is the length up to the last line's end,
 * *ret_foreign that it is of another boot (nothing is taken in then). */
int journal_parse(Journal *journal, const char *text, size_t len, size_t *ret_good, bool *ret_foreign,
                  char **ret_error);
/* The text that journal_parse() reads back as the same. Malloc'd, NULL when memory is out. */
char *journal_format(const Journal *journal, size_t *ret_len);

/* A change about to be made. */
typedef struct JournalChange {
    ActProcess process;
    TaskKey task;                  /* one of its threads */
    bool ours;                     /* the mask it has now is ours, so nothing is learnt from it */
    JournalOriginal original;      /* else: the mask it has now (need not be interned) */
    hwloc_const_bitmap_t mask;     /* what it gets; finite */
    const JournalPassage *passage; /* NULL: it gets it at once */
    uint64_t place, since_ticks;   /* of a process that is not entered yet */
    const TaskKey *own;            /* other threads of it that have `mask` already, as their user's choice */
    size_t n_own;
} JournalChange;

/* Writes down what of this is not written yet. 0, -ENOMEM, or another -errno of the file; nothing is known then. */
int journal_note_change(Journal *journal, const JournalChange *change);
/* The last passage is over for its thread. */
int journal_note_settled(Journal *journal);
/* Those that are over for their threads are over for what was born meanwhile, too, and are dropped. */
int journal_note_checked(Journal *journal);
void journal_drop_settled(Journal *journal);
int journal_note_released(Journal *journal, JournalProcess *process, uint64_t ticks);
/* Does nothing when there are JOURNAL_STRANGERS_MAX. */
int journal_note_stranger(Journal *journal, pid_t pid, uint64_t start_ticks);
/* Who came into a fence shows its CPUs as if they were chosen. Once it has a mask from us it is a stranger no more. */
bool journal_is_stranger(const Journal *journal, pid_t pid, uint64_t start_ticks);

/* Writes down what of this is not written yet: what a cpuset was, and what it is about to become. Return as above. */
int journal_note_fence(Journal *journal,
                       const JournalFence *fence); /* strings and `before` need not be interned */
int journal_note_fenced(Journal *journal, const char *name, bool memory, hwloc_const_bitmap_t set);
int journal_note_unfenced(Journal *journal, const char *name, bool memory);
/* NULL: there is none. Valid until the next journal_note_...(). */
JournalFence *journal_fence(const Journal *journal, const char *name, bool memory);

/* Whether all of this is to stay when its writer is gone. 0 or -errno of the file. */
int journal_note_kept(Journal *journal, bool kept);

/* The entry of that very process, or NULL. Valid until the next journal_note_...(). */
JournalProcess *journal_process(const Journal *journal, pid_t pid, uint64_t start_ticks);
/* The index of the first entry with that or a higher number. */
size_t journal_first(const Journal *journal, pid_t pid);
/* Whether threads of the process got this mask from us, as far as the file says. */
bool journal_is_applied(const JournalProcess *process, hwloc_const_bitmap_t mask);
/* What that thread had before us. */
JournalOriginal journal_original(const Journal *journal, const JournalProcess *process, TaskKey task);

/* Whether so much has become of no use that journal_compact() is worth its scan. */
bool journal_bloated(const Journal *journal);
/* Drops processes that are not among the `n` living ones (ascending pid) or were released, and writes the file anew. 0,
 * -ENOMEM, or another -errno of the file, which is as it was then. Entries move. */
int journal_compact(Journal *journal, const ActProcess *living, size_t n);
/* Drops everything, since nothing has a mask or a cpuset from us any more, and writes the file anew; or cuts it, where
 * there is no room. Return as above. */
int journal_clear(Journal *journal);
