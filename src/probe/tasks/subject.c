/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* All files of one process are read through one descriptor of its directory. When the process ends and its
 * PID is reused, the descriptor fails with ESRCH, so the facts of two processes never mix. If the first thread has
 * ended before the others, one of these tells what the process is. */

#include "base/root.h"
#include "base/scan.h"
#include "base/time.h"
#include "kernel/taskstat.h"
#include "probe/probe-internal.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Longest wait for a read. One that does not hang takes some 30 microseconds. */
#define TICK_WAIT_USEC (20 * USEC_PER_MSEC)
/* All waits of a tick together, in units of the wait for one read. The next tick asks again for the rest. */
#define TICK_WAITS 2U
/* Hundreds of processes that fork at once block each other for seconds. What is given up too early is read later. */
#define GIVE_UP_USEC (2 * USEC_PER_SEC)

int probe_note_error(Probe *probe, int r)
{
    probe->statistics.n_no_descriptors += r == -EMFILE || r == -ENFILE;
    return r;
}

static int take_stat(Probe *probe, const char *text, ssize_t n, ProcStat *ret)
{
    int r;

    probe->statistics.n_reads++;
    if (n < 0)
        return probe_note_error(probe, (int)n);
    r = procstat_parse(text, ret);
    if (r < 0)
        probe->statistics.n_unparsable++;
    return r;
}

int subject_read_stat(Probe *probe, int dir_fd, const char *path, ProcStat *ret)
{
    char text[PROCSTAT_TEXT_SIZE];
    ssize_t n = root_read(dir_fd, path, text, sizeof(text));

    return take_stat(probe, text, n, ret);
}

int subject_look_up_stat(Probe *probe, pid_t pid, pid_t tid, ProcStat *ret)
{
    char text[PROCSTAT_TEXT_SIZE];
    ssize_t n = stat_files_read(&probe->stat_files, probe->proc_fd, pid, tid, text, sizeof(text));

    return take_stat(probe, text, n, ret);
}

/* Chooses where to read what a process is. */
static void open_facts(Probe *probe, Subject *subject)
{
    ProcStat stat;
    int fd = -1;

    if (procstat_has_ended(&subject->stat) && subject->stat.num_threads > 1)
        fd = probe_note_error(probe, procstat_open_living(subject->fd, &stat));
    probe->statistics.n_reads += fd >= 0;
    if (fd >= 0)
        subject->stat.rss_pages = stat.rss_pages;
    subject->facts_fd = fd >= 0 ? fd : subject->fd;
}

int subject_open(Probe *probe, pid_t pid, Subject *ret)
{
    CLEANUP_CLOSE int fd = -1;
    Subject subject = {.pid = pid};
    char name[16];
    int r;

    (void)snprintf(name, sizeof(name), "%d", (int)pid);
    fd = openat(probe->proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    r = subject_read_stat(probe, fd, "stat", &subject.stat);
    if (r < 0)
        return r;

    subject.fd = TAKE_FD(fd);
    open_facts(probe, &subject);
    *ret = subject;
    return 0;
}

void subject_close(Subject *subject)
{
    if (subject->fd >= 0 && subject->facts_fd != subject->fd)
        (void)close(subject->facts_fd);
    close_p(&subject->fd);
    subject->fd = -1;
}

/* FNV-1a. A change that the hash misses costs one wrong decision until the next change, not safety. */
static uint64_t hash_string(uint64_t hash, const char *s)
{
    for (; s && *s; s++)
        hash = (hash ^ (unsigned char)*s) * 0x100000001b3ULL;
    return (hash ^ 0xff) * 0x100000001b3ULL; /* ends the string */
}

uint64_t subject_hash(const char *s)
{
    return hash_string(0xcbf29ce484222325ULL, s);
}

static const char *read_exe(Probe *probe, const Subject *subject)
{
    ssize_t n = readlinkat(subject->facts_fd, "exe", probe->exe, sizeof(probe->exe) - 1);

    if (n < 0)
        return NULL; /* we may not read it, or it is gone: the next read will tell */
    probe->exe[n] = '\0';
    return probe->exe;
}

int subject_read_identity(Probe *probe, Subject *subject, unsigned wants)
{
    ssize_t n = root_read(subject->facts_fd, "cgroup", probe->cgroup_text, sizeof(probe->cgroup_text));
    uint64_t hash;

    probe->statistics.n_reads++;
    if (n < 0 && probe->features.cgroup != PROBE_CGROUP_NONE)
        return (int)n;
    /* A kernel without control groups has no such file; everything is then in the root. */
    if (n < 0)
        (void)strcpy(probe->cgroup_text, "0::/\n");
    if (cgroup_parse(probe->cgroup_text, &subject->cgroup) < 0) {
        probe->statistics.n_unparsable++;
        return -EINVAL;
    }
    cgroup_unit(subject->cgroup.main, &subject->unit);
    subject->exe = wants & PROBE_WANTS_EXE ? read_exe(probe, subject) : NULL;

    hash = hash_string(subject_hash(subject->stat.comm), subject->cgroup.main);
    hash = hash_string(hash, subject->cgroup.cpuset);
    subject->identity = hash_string(hash, subject->exe);
    return 0;
}

/* Makes the reader threads on first use. 0 or -errno. */
static int make_aside(Probe *probe)
{
    uint32_t wait = probe->options.aside_wait_usec > 0 ? probe->options.aside_wait_usec : TICK_WAIT_USEC;
    const AsideOptions options = {
        .read = root_read,
        .size = SUBJECT_TEXT_SIZE,
        .wait_usec = wait,
        .budget_usec = TICK_WAITS * wait,
        .give_up_usec = MAX(GIVE_UP_USEC, wait),
    };

    return probe->options.aside && !probe->aside ? aside_new(&options, &probe->aside) : 0;
}

/* Whether a file is not known yet, as opposed to unreadable. */
static bool is_unknown(ssize_t n)
{
    return n == -EAGAIN || n == -ETIMEDOUT || n == -EDQUOT;
}

/* Whether reading failed for lack of something, which says nothing about the file. */
static bool is_short(ssize_t n)
{
    return n == -ENOMEM || n == -EMFILE || n == -ENFILE;
}

/* Reads a file of NUL-separated strings as far as it fits. Returns its length, 0 when it cannot be read,
 * -ENOMEM, -EMFILE, -ENFILE, or as aside_read() when it is not known and has to be asked for again. */
static ssize_t read_strings(Probe *probe, const Subject *subject, const char *file, char **buf)
{
    size_t size = SUBJECT_TEXT_SIZE;
    const AsideKey key = {
        .file = file,
        .identity = subject->identity,
        .start_ticks = subject->stat.start_ticks,
        .pid = subject->pid,
        .uid = subject->uid,
        .group = subject_hash(subject->cgroup.main),
    };
    ssize_t n;

    if (!*buf)
        *buf = malloc(size);
    if (!*buf || make_aside(probe) < 0)
        return -ENOMEM;
    n = probe->aside ? aside_read(probe->aside, subject->facts_fd, &key, *buf)
                     : root_read(subject->facts_fd, file, *buf, size);
    if (n == -EFBIG) {
        n = (ssize_t)size - 1;
        (*buf)[n] = '\0';
    }
    if (n == -EAGAIN)
        probe->statistics.n_put_off++;
    return n < 0 && !is_unknown(n) && !is_short(n) ? 0 : n;
}

/* The command line with blanks between the arguments; NULL when there is none. 0, or as read_strings(). */
static int read_command_line(Probe *probe, const Subject *subject, const char **ret)
{
    ssize_t n = read_strings(probe, subject, "cmdline", &probe->command_line);

    if (n < 0)
        return (int)n;
    while (n > 0 && probe->command_line[n - 1] == '\0')
        n--;
    for (ssize_t i = 0; i < n; i++)
        if (probe->command_line[i] == '\0')
            probe->command_line[i] = ' ';
    *ret = n > 0 ? probe->command_line : NULL;
    return 0;
}

static int read_status(Probe *probe, Subject *subject, ProbeSubject *ret)
{
    ssize_t n = root_read(subject->fd, "status", probe->status_text, sizeof(probe->status_text));
    ProbeSubject facts = {
        .pid = subject->pid,
        .parent = subject->stat.ppid,
        .group = subject->stat.pgrp,
        .session = subject->stat.session,
        .start_ticks = subject->stat.start_ticks,
        .comm = subject->stat.comm,
        .exe = subject->exe,
        .cgroup = subject->cgroup.main,
        .unit = *subject->unit.unit ? subject->unit.unit : NULL,
        .slice = *subject->unit.slice ? subject->unit.slice : NULL,
        .rss_bytes = subject->stat.rss_pages * probe->page_bytes,
        .n_threads = subject->stat.num_threads,
        .cpu_permille = subject->cpu_permille,
    };
    TaskStatus status;

    probe->statistics.n_reads++;
    if (n < 0)
        return (int)n;
    if (taskstat_parse_status(probe->status_text, &status) < 0) {
        probe->statistics.n_unparsable++;
        return -EINVAL;
    }
    subject->uid = facts.uid = status.uid;
    *ret = facts;
    return 0;
}

/* 0, or as read_strings(). */
static int read_texts(Probe *probe, const Subject *subject, unsigned wants, ProbeSubject *facts)
{
    if (wants & PROBE_WANTS_COMMAND_LINE) {
        int r = read_command_line(probe, subject, &facts->command_line);

        if (r < 0)
            return r;
    }
    if (wants & PROBE_WANTS_ENVIRONMENT) {
        ssize_t n = read_strings(probe, subject, "environ", &probe->environment);

        if (n < 0)
            return (int)n;
        facts->environment_len = (size_t)n;
        /* Empty is also what a process has during exec(2), and what cannot be read, so it is not known to be empty. */
        facts->environment = n > 0 ? probe->environment : NULL;
    }
    return 0;
}

int subject_read_facts(Probe *probe, Subject *subject, unsigned wants, ProbeSubject *ret)
{
    int r = read_status(probe, subject, ret);

    return r < 0 ? r : read_texts(probe, subject, wants, ret);
}

void subject_tell_hanging(Probe *probe, const Subject *subject)
{
    const ProbeSubject facts = {
        .pid = subject->pid,
        .start_ticks = subject->stat.start_ticks,
        .comm = subject->stat.comm,
        .uid = subject->uid,
    };

    if (probe->callbacks.hangs)
        probe->callbacks.hangs(probe->callbacks.userdata, &facts);
}

int subject_decide(Probe *probe, Subject *subject, ProbeDecision *ret_decision, size_t *ret_policy)
{
    ProbeSubject facts;
    int r = read_status(probe, subject, &facts);

    if (r == 0 &&
        !(probe->callbacks.is_settled && probe->callbacks.is_settled(probe->callbacks.userdata, &facts)))
        r = read_texts(probe, subject, probe->options.wants, &facts);
    if (r < 0)
        return r;
    *ret_decision = probe->callbacks.decide(probe->callbacks.userdata, &facts, ret_policy);
    return 0;
}
