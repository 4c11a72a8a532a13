/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The search begins two seconds after a release, once for all processes released by then. Hardly any thread
 * is still inside fork(2) then, and every process of the machine is looked at once.
 *
 *     threads   of each process in turn, in passes until one finds nothing; some thousand in each step
 *        |
 *        |      then of their heirs (act/masks/births.c), which are searched for as well
 *     children  a round of restore_finish() in each step, until it is over
 *
 * Journal entries move when others are written, so those searched for are marked, not pointed at. One that
 * gets a mask again is dropped. */

#include "act/undo/search.h"

#include "act/masks/slice.h"

#include <sys/resource.h>

/* Threads per step: 2 us each for the walk, and 7 for the state of one that has its own mask. */
#define STEP_THREADS 4096U

struct Search {
    Restore restore;
    RestoreWalk pass; /* of walk.pid; 0: no process yet */
    unsigned n_passes;
    uint64_t next_usec; /* no step before this time */
};

Search *search_free(Search *search)
{
    if (!search)
        return NULL;
    close_p(&search->pass.walk.fd);
    hwloc_bitmap_free(search->restore.have);
    free(search);
    return NULL;
}

static int begin(Act *act, const World *world)
{
    Search *search = calloc(1, sizeof(*search));

    if (!search)
        return -ENOMEM;
    search->pass.walk.fd = -1;
    search->restore = (Restore){.act = act, .world = world, .have = hwloc_bitmap_alloc()};
    if (!search->restore.have) {
        (void)search_free(search);
        return -ENOMEM;
    }
    for (size_t i = 0; i < act->journal->n_processes; i++) {
        act->journal->processes[i].searched = act->journal->processes[i].roams;
        /* Threads of released processes may have been pinned since. Only their children are looked for. */
        act->journal->processes[i].checked = act->journal->processes[i].released_ticks > 0;
        act->journal->processes[i].roams = act->journal->processes[i].stuck = false;
    }
    act->search_usec = 0;
    act->search = search;
    return 0;
}

/* The next process with threads to look at. */
static JournalProcess *next_unchecked(const Journal *journal)
{
    for (size_t i = 0; i < journal->n_processes; i++)
        if (journal->processes[i].searched && !journal->processes[i].checked)
            return &journal->processes[i];
    return NULL;
}

/* Continues a pass over the process. */
static void look_at_threads(Search *search, JournalProcess *entry)
{
    RestoreWalk *pass = &search->pass;
    int r;

    if (pass->walk.pid != entry->pid || pass->walk.start_ticks != entry->start_ticks) {
        close_p(&pass->walk.fd);
        search->n_passes = 0;
        *pass = (RestoreWalk){
            .walk = {.pid = entry->pid, .start_ticks = entry->start_ticks, .fd = -1, .n_max = STEP_THREADS}};
    }
    search->restore.again = search->n_passes > 0;
    search->restore.late = search->n_passes == 0;
    r = restore_walk(&search->restore, entry, pass);
    search->restore.again = search->restore.late = false;
    if (pass->walk.more)
        return;
    entry->checked = r <= 0 || ++search->n_passes >= ACT_PASSES_MAX;
    if (r > 0 && entry->checked && search->restore.error == 0)
        search->restore.error = -EAGAIN;
    pass->changed = false;
    pass->error = 0;
}

/* Returns whether it is over. */
static bool look_for_children(Search *search)
{
    Restore *restore = &search->restore;
    int nice_before = getpriority(PRIO_PROCESS, 0), r;
    uint64_t usec = 0;

    (void)setpriority(PRIO_PROCESS, 0, ACT_RESTORE_NICE);
    r = restore_children_step(restore, &usec);
    (void)setpriority(PRIO_PROCESS, 0, nice_before);
    search->next_usec = restore->world->now_usec + usec;
    if (r > 0)
        return false;
    (void)restore_end(restore, r);
    if (restore->act->search_error == 0)
        restore->act->search_error = restore_result(restore);
    return true;
}

/* Adds heirs of processes whose threads are done. Returns whether there were new ones. */
static bool add_heirs(const Search *search, Journal *journal)
{
    bool found = false;

    for (size_t i = 0; i < journal->n_processes && search->restore.n_rounds == 0; i++)
        if (restore_is_heir(&search->restore, &journal->processes[i])) {
            journal->processes[i].searched = journal->processes[i].selected = true;
            journal->processes[i].checked = false;
            found = true;
        }
    return found;
}

/* Looks at threads as far as this slice goes. Returns whether all are done. */
static bool check_threads(Act *act, Search *search)
{
    JournalProcess *entry;

    do
        while ((entry = next_unchecked(act->journal))) {
            if (slice_spent(act))
                return false;
            look_at_threads(search, entry);
            if (search->pass.walk.more)
                return false;
        }
    while (add_heirs(search, act->journal));
    return true;
}

int search_step(Act *act, const World *world)
{
    Journal *journal = act->journal;
    Search *search;
    bool over;

    if (!act->search && act->search_usec > 0 && world->now_usec >= act->search_usec && begin(act, world) < 0)
        return -ENOMEM;
    search = act->search;
    if (!search)
        return 0;
    slice_leave(act);
    if (world->now_usec < search->next_usec)
        return 0;
    act_refresh(act);
    search->restore.world = world;
    for (size_t i = 0; i < journal->n_processes; i++)
        journal->processes[i].selected = journal->processes[i].searched;
    over = check_threads(act, search) && look_for_children(search);
    /* Children that were found are in the journal now, and restored like the others. */
    for (size_t i = 0; i < journal->n_processes; i++) {
        journal->processes[i].checked |= journal->processes[i].selected && !journal->processes[i].searched;
        journal->processes[i].searched = journal->processes[i].selected && !over;
    }
    if (over)
        act->search = search_free(search);
    return 0;
}

void act_search(Act *act, const ActSelection *selection)
{
    for (size_t i = 0; act->journal && i < act->journal->n_processes; i++)
        if (restore_wants(selection, &act->journal->processes[i])) {
            act->journal->processes[i].roams = true;
            act->search_usec = 1; /* long due */
        }
}

int act_restore_slowly(Act *act, const ActSelection *selection)
{
    act_search(act, selection);
    return act->fences ? fences_restore(act->fences) : 0;
}

bool act_is_restoring(const Act *act, const ActSelection *selection)
{
    for (size_t i = 0; act->journal && i < act->journal->n_processes; i++) {
        const JournalProcess *entry = &act->journal->processes[i];

        if ((entry->roams || entry->searched) && restore_wants(selection, entry))
            return true;
    }
    return false;
}

int act_restoring_error(Act *act)
{
    int r = act->search_error;

    act->search_error = 0;
    return r;
}
