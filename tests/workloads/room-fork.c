/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The processes of a workload, from the point of view of the first one. */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "room.h"

/* With one process nothing is forked. */
static unsigned n_children(const Room *room)
{
    return room->options.processes > 1 ? room->options.processes : 0;
}

static void say_how(const Room *room, pid_t pid, int status)
{
    if (WIFSIGNALED(status))
        (void)fprintf(stderr, "%s: process %d was killed by signal %d\n", room->shape->name, pid,
                      WTERMSIG(status));
    else
        (void)fprintf(stderr, "%s: process %d ended early with status %d\n", room->shape->name, pid,
                      WEXITSTATUS(status));
}

bool fork_all(Room *room)
{
    pid_t first = getpid();

    for (unsigned i = 0; i < n_children(room); i++) {
        pid_t pid = fork();

        if (pid < 0) {
            perror(room->shape->name);
            return false;
        }
        if (pid > 0) {
            room->pids[i] = pid;
            continue;
        }
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != first)
            _exit(EXIT_FAILURE); /* the first process died before prctl() */
        room_start_process(room, i);
        room_end_process(room);
        exit(EXIT_SUCCESS);
    }
    return true;
}

bool fork_all_alive(Room *room)
{
    for (unsigned i = 0; i < n_children(room); i++) {
        int status;

        if (waitpid(room->pids[i], &status, WNOHANG) == 0)
            continue;
        say_how(room, room->pids[i], status);
        room->pids[i] = 0;
        return false;
    }
    return true;
}

static int wait_for(pid_t pid)
{
    int status = 0;

    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

void fork_kill_all(Room *room)
{
    for (unsigned i = 0; i < n_children(room); i++)
        if (room->pids[i] > 0) {
            (void)kill(room->pids[i], SIGKILL);
            (void)wait_for(room->pids[i]);
        }
}

bool fork_reap_all(Room *room)
{
    bool good = true;

    for (unsigned i = 0; i < n_children(room); i++) {
        int status = wait_for(room->pids[i]);

        if (status != 0) {
            say_how(room, room->pids[i], status);
            good = false;
        }
    }
    return good;
}
