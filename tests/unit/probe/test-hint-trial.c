/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The trial's child holds nothing of its parent's, and does not outlive the parent. */

#include "probe-test.h"

#include "probe/hints/trial.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

typedef struct Shared {
    pid_t child;
    int signal; /* that it gets when its parent ends */
} Shared;

/* Reports through its standard input that it runs, and stays. */
static void be_child(Shared *shared, pid_t parent)
{
    hint_trial_detach(parent);
    shared->child = getpid();
    (void)prctl(PR_GET_PDEATHSIG, &shared->signal);
    (void)!write(STDIN_FILENO, "", 1);
    for (;;)
        (void)pause();
}

/* Holds a lock, as a daemon does, and has a child. */
static void be_parent(Shared *shared, const char *path, int said)
{
    pid_t self = getpid();
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0 || flock(fd, LOCK_EX) < 0 || dup2(said, STDIN_FILENO) < 0)
        _exit(1);
    (void)close(said);
    if (fork() == 0)
        be_child(shared, self);
    (void)close(STDIN_FILENO); /* if the child failed, the reader sees the end of the file */
    for (;;)
        (void)pause();
}

static void test_parent_is_killed(void **state)
{
    char path[] = "/tmp/numaplace-test-XXXXXX", byte;
    Shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd = mkostemp(path, O_CLOEXEC), said[2], status;
    pid_t parent;

    assert_true(shared != MAP_FAILED);
    assert_true(fd >= 0);
    assert_int_equal(pipe2(said, O_CLOEXEC), 0);
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    parent = fork();
    assert_true(parent >= 0);
    if (parent == 0)
        be_parent(shared, path, said[1]);
    (void)close(said[1]);
    assert_int_equal(read(said[0], &byte, 1), 1);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1); /* held by its parent */

    assert_int_equal(kill(parent, SIGKILL), 0);
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_int_equal(shared->signal, SIGKILL);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(waitpid(shared->child, &status, 0), shared->child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);

    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    (void)close(said[0]);
    (void)close(fd);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(munmap(shared, sizeof(*shared)), 0);
}

/* The parent was killed between fork(2) and the child's first call: the child has another parent by then. */
static void test_parent_is_gone(void **state)
{
    pid_t other = getppid(), child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        hint_trial_detach(other);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The trial works without what it closes: whatever its result on this machine, a child was made and reported it. */
static void test_outcome(void **state)
{
    HintTrial trial;

    hint_trial(&trial);
    assert_int_not_equal(trial.outcome, HINT_TRIAL_NO_CHILD);
}

static bool reads_short;

/* Stands in for the C library's. Of what it does not read it says nothing, but an error of before is still there. */
ssize_t pread(int fd, void *buf, size_t size, off_t at)
{
    if (!reads_short)
        return syscall(SYS_pread64, fd, buf, size, at);
    errno = EXDEV;
    return 0;
}

/* An end of file is no error, and none of before is told. */
static void test_short_read(void **state)
{
    HintTrial trial;

    reads_short = true;
    hint_trial(&trial);
    reads_short = false;
    assert_int_equal(trial.outcome, HINT_TRIAL_NO_PROC);
    assert_int_equal(trial.error, 0);
}

TEST_MAIN(NULL, NULL, test_parent_is_killed, test_parent_is_gone, test_outcome, test_short_read)
