/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "../temp-tree.h"
#include "base/root.h"
#include "base/util.h"

#include <fcntl.h>
#include <sys/wait.h>

/* A directory of its own for each test, as a root descriptor. */
typedef struct Fixture {
    char *path;
    int fd;
} Fixture;

static int setup(void **state)
{
    Fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->path = test_tree_new();
    f->fd = root_open(f->path);
    assert_true(f->fd >= 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    CLEANUP_FREE Fixture *f = *state;

    (void)close(f->fd);
    test_tree_remove(f->path);
    return 0;
}

static void put(const Fixture *f, const char *name, size_t size)
{
    CLEANUP_FREE char *data = malloc(size + 1);

    assert_non_null(data);
    for (size_t i = 0; i < size; i++)
        data[i] = (char)('a' + i % 26);
    (void)test_write_bytes(f->path, name, data, size);
}

static void test_open(void **state)
{
    Fixture *f = *state;
    CLEANUP_CLOSE int first = -1, second = -1;

    assert_int_equal(mkdirat(f->fd, "dir", 0700), 0);
    put(f, "dir/file", 3);
    first = root_open_file(f->fd, "dir/file");
    second = root_open_file(f->fd, "/dir/file"); /* still below the root */
    assert_true(first >= 0 && second >= 0);
    assert_true(fcntl(first, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(f->fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(root_open_file(f->fd, "missing"), -ENOENT);
    assert_int_equal(root_open_file(f->fd, ""), -ENOENT);
    assert_int_equal(root_open_file(f->fd, "dir/file/under"), -ENOTDIR);
    assert_int_equal(root_open("/nonexistent"), -ENOENT);
    assert_int_equal(root_open("/dev/null"), -ENOTDIR);
}

/* The buffer must hold the file and a terminator: one byte less gives -EFBIG, whatever the size. */
static void test_read_sizes(void **state)
{
    static const size_t sizes[] = {0, 1, 5, 511, 512, 513, 4095, 4096, 4097, 10000};
    Fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        CLEANUP_FREE char *buf = malloc(sizes[i] + 2);
        ssize_t len;

        put(f, "file", sizes[i]);
        len = root_read(f->fd, "file", buf, sizes[i] + 2);
        assert_int_equal(len, sizes[i]);
        assert_int_equal(strlen(buf), sizes[i]);
        if (sizes[i] > 1) {
            assert_int_equal(root_read(f->fd, "file", buf, sizes[i] + 1), sizes[i]);
            assert_int_equal(root_read(f->fd, "file", buf, sizes[i]), -EFBIG);
        }
    }
}

/* A descriptor that stays open is read from its start each time. */
static void test_pread_again(void **state)
{
    Fixture *f = *state;
    CLEANUP_CLOSE int fd = -1;
    char buf[32];

    put(f, "file", 3);
    fd = root_open_file(f->fd, "file");
    assert_int_equal(root_pread(fd, buf, sizeof(buf)), 3);
    assert_int_equal(root_pread(fd, buf, sizeof(buf)), 3);
    assert_string_equal(buf, "abc");
    put(f, "file", 5);
    assert_int_equal(root_pread(fd, buf, sizeof(buf)), 5);
    assert_string_equal(buf, "abcde");
}

static void test_read_alloc(void **state)
{
    Fixture *f = *state;
    char *text = (char *)f, *kept = text;
    size_t len = 77;

    put(f, "file", 10000);
    assert_int_equal(root_read_alloc(f->fd, "file", 9999, &text, &len), -EFBIG);
    assert_int_equal(root_read_alloc(f->fd, "missing", 100, &text, &len), -ENOENT);
    assert_int_equal(root_read_alloc(f->fd, ".", 100, &text, &len), -EISDIR);
    assert_ptr_equal(text, kept);
    assert_int_equal(len, 77);

    assert_int_equal(root_read_alloc(f->fd, "file", 10000, &text, &len), 0);
    assert_int_equal(len, 10000);
    assert_int_equal(strlen(text), 10000);
    free(text);

    put(f, "file", 0);
    assert_int_equal(root_read_alloc(f->fd, "file", 0, &text, &len), 0);
    assert_int_equal(len, 0);
    assert_string_equal(text, "");
    free(text);
}

/* NUL bytes are data; the length counts them. */
static void test_read_nul(void **state)
{
    Fixture *f = *state;
    CLEANUP_CLOSE int fd = openat(f->fd, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    CLEANUP_FREE char *text = NULL;
    size_t len;

    assert_int_equal(write(fd, "a\0b", 3), 3);
    assert_int_equal(root_read_alloc(f->fd, "file", 10, &text, &len), 0);
    assert_int_equal(len, 3);
    assert_memory_equal(text, "a\0b", 4);
}

/* Reads from the current position of the descriptor. */
static void test_read_fd(void **state)
{
    Fixture *f = *state;
    CLEANUP_CLOSE int fd = -1;
    CLEANUP_FREE char *text = NULL;
    size_t len;

    put(f, "file", 5);
    fd = root_open_file(f->fd, "file");
    assert_int_equal(lseek(fd, 2, SEEK_SET), 2);
    assert_int_equal(root_read_fd(fd, 100, &text, &len), 0);
    assert_int_equal(len, 3);
    assert_string_equal(text, "cde");
}

/* Writes to the pipe once the reader waits. */
static _Noreturn void write_late(int fd, pid_t reader)
{
    char path[32], text[512] = "";

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)reader);
    while (getppid() == reader && !strstr(text, ") S ")) {
        int root_fd = root_open("/");

        memset(text, 0, sizeof(text));
        (void)root_read(root_fd, path, text, sizeof(text));
        (void)close(root_fd);
    }
    _exit(write(fd, "late", 4) == 4 ? 0 : 1);
}

/* What `zstd -dc record.zst | numaplacectl replay /dev/stdin` reads comes later. */
static void test_read_pipe(void **state)
{
    CLEANUP_FREE char *text = NULL;
    pid_t reader = getpid(), child;
    char path[32];
    int fds[2], status;
    size_t len;

    assert_int_equal(pipe(fds), 0);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        write_late(fds[1], reader);
    assert_int_equal(close(fds[1]), 0);
    assert_int_equal(root_read_path(path, 100, &text, &len), 0);
    assert_string_equal(text, "late");
    assert_int_equal(len, 4);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(close(fds[0]), 0);
    assert_int_equal(root_read_path("/nonexistent", 100, &text, &len), -ENOENT);
}

/* Nobody writes to it. */
static void test_read_fifo(void **state)
{
    const Fixture *f = *state;
    CLEANUP_FREE char *text = NULL;
    const char *path = test_path(f->path, "fifo");
    size_t len;

    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(root_read_path(path, 100, &text, &len), 0);
    assert_int_equal(len, 0);
}

TEST_MAIN(setup, teardown, test_open, test_read_sizes, test_pread_again, test_read_alloc, test_read_nul,
          test_read_fd, test_read_pipe, test_read_fifo)
