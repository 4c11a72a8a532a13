/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "team.h"

#include "base/time.h"
#include "base/util.h"
#include "memory.h"
#include "threads.h"

static void write_pages(Team *team, unsigned index, volatile char *p, size_t bytes)
{
    uint64_t before = time_now_usec();

    for (size_t at = 0, n = 0; at < bytes; at += PAGE, n++) {
        uint64_t now;

        p[at + index]++;
        if (n % 16 != 15)
            continue;
        now = time_now_usec();
        if (now - before > team->gap_usec[index])
            team->gap_usec[index] = now - before;
        before = now;
    }
}

/* Threads that share memory begin at different blocks, so that each comes first in some. */
static void work(Team *team, unsigned index)
{
    volatile char *p = team->buffer[index];

    if (team->mode == TEAM_SHARED) {
        size_t half = (team->pass[index] + index) % TEAM_BLOCKS * HUGE;

        write_pages(team, index, p + half, TEAM_BLOCKS * HUGE - half);
        write_pages(team, index, p, half);
    } else {
        write_pages(team, index, p, TEAM_BLOCKS * HUGE);
    }
}

static void member_main(void *userdata, unsigned index)
{
    Team *team = userdata;

    team->tid[index] = gettid();
    for (;;) {
        if (team->pass[index] >= team->limit[index]) {
            nap();
            continue;
        }
        if (team->mode == TEAM_GROW)
            pages_touch(pages_map(512), 512);
        work(team, index);
        team->pass[index]++;
    }
}

static char *make_buffer(const Team *team)
{
    return team->huge ? huge_on(team->node, TEAM_BLOCKS) : pages_on(team->node, TEAM_BLOCKS * HUGE / PAGE);
}

static void team_main(void *userdata)
{
    Team *team = userdata;

    /* The main thread touches everything first, as programs do. */
    for (unsigned i = 0; i < TEAM_THREADS; i++)
        team->buffer[i] = i > 0 && team->mode == TEAM_SHARED ? team->buffer[0] : make_buffer(team);
    threads_run(TEAM_THREADS, member_main, team);
}

bool team_done(void *userdata)
{
    const Team *team = userdata;

    for (unsigned i = 0; i < TEAM_THREADS; i++)
        if (team->pass[i] < team->limit[i])
            return false;
    return true;
}

uint64_t team_gap(Team *team)
{
    uint64_t gap = 0;

    for (unsigned i = 0; i < TEAM_THREADS; i++) {
        gap = MAX(gap, team->gap_usec[i]);
        team->gap_usec[i] = 0;
    }
    return gap;
}

pid_t team_start(TeamMode mode, bool huge, Team **ret)
{
    Team *team = shared_alloc(sizeof(*team));
    pid_t pid;

    team->mode = mode;
    team->huge = huge;
    team->node = bit_last(memory_nodes());
    for (unsigned i = 0; i < TEAM_THREADS; i++)
        team->limit[i] = UINT64_MAX;
    pid = child_start(team_main, team);
    while (team->pass[TEAM_THREADS - 1] < 2)
        nap();
    *ret = team;
    return pid;
}
