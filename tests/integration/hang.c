/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* hang UID: a process of that user whose command line and environment cannot be read.
 *
 * It maps a page of a file on a FUSE file system that never answers a read. One thread reads that page
 * through its own /proc/self/mem, which takes the lock of the address space for reading and holds it while it
 * waits for the page. Then another thread maps something, which waits for that lock for writing. Later
 * readers of the lock queue behind it: a reader of /proc/PID/cmdline, or environ, sleeps in the kernel.
 *
 * The server is the parent. Ending it ends everything, because the kernel fails unanswered requests. Nothing
 * is left behind: the mount is in a namespace of its own. Prints "ready PID" when the process hangs. Exit
 * status 77: this is not possible here. */

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define SKIP       77
#define PAGE_BYTES 4096U
#define FILE_ID    2U

typedef struct Held {
    int mem_fd;
    void *page;
} Held;

static void give_up(const char *what)
{
    perror(what);
    exit(SKIP);
}

static void answer(int fd, uint64_t unique, const void *data, size_t len, int error)
{
    char buf[512];
    struct fuse_out_header *out = (struct fuse_out_header *)(void *)buf;

    *out = (struct fuse_out_header){.len = (uint32_t)(sizeof(*out) + len), .error = error, .unique = unique};
    if (len > 0)
        (void)memcpy(buf + sizeof(*out), data, len);
    (void)!write(fd, buf, out->len);
}

static struct fuse_attr attributes(uint64_t id)
{
    return (struct fuse_attr){
        .ino = id,
        .size = id == FILE_ID ? PAGE_BYTES : 0,
        .mode = id == FILE_ID ? 0100444 : 040555,
        .nlink = 1,
        .blksize = PAGE_BYTES,
    };
}

static void serve_one(int fd, const struct fuse_in_header *in, const void *body)
{
    struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = PAGE_BYTES};
    struct fuse_entry_out entry = {.nodeid = FILE_ID, .attr_valid = 1000, .entry_valid = 1000};
    struct fuse_attr_out attr = {.attr_valid = 1000, .attr = attributes(in->nodeid)};
    struct fuse_open_out opened = {.open_flags = FOPEN_KEEP_CACHE};

    switch (in->opcode) {
    case FUSE_INIT:
        init.max_readahead = ((const struct fuse_init_in *)body)->max_readahead;
        answer(fd, in->unique, &init, sizeof(init), 0);
        break;
    case FUSE_LOOKUP:
        entry.attr = attributes(FILE_ID);
        answer(fd, in->unique, &entry, sizeof(entry), 0);
        break;
    case FUSE_GETATTR:
        answer(fd, in->unique, &attr, sizeof(attr), 0);
        break;
    case FUSE_OPEN:
        answer(fd, in->unique, &opened, sizeof(opened), 0);
        break;
    case FUSE_READ: /* never answered */
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
        break;
    default:
        answer(fd, in->unique, NULL, 0, in->opcode == FUSE_FLUSH || in->opcode == FUSE_RELEASE ? 0 : -ENOSYS);
    }
}

static int mount_it(const char *directory)
{
    char options[128];
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

    if (fd < 0)
        give_up("/dev/fuse");
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        give_up("unshare");
    (void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
    if (mount("hang", directory, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
        give_up("mount");
    return fd;
}

static void *hold(void *userdata)
{
    const Held *held = userdata;
    char byte;

    (void)!pread(held->mem_fd, &byte, 1, (off_t)(uintptr_t)held->page);
    return NULL;
}

/* The process that hangs. `go` tells it that the page has been requested. */
static void hang(const char *path, uid_t uid, int go)
{
    static Held held;
    pthread_t thread;
    char byte;
    int fd;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    held.mem_fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    held.page = fd < 0 ? MAP_FAILED : mmap(NULL, PAGE_BYTES, PROT_READ, MAP_PRIVATE, fd, 0);
    if (held.mem_fd < 0 || held.page == MAP_FAILED)
        give_up(path);
    (void)close(fd); /* the mapping stays; closing it at exit would wait for an answer, too */
    if (uid > 0 && (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0))
        give_up("setresuid");
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* the change of the user resets it */
    if (pthread_create(&thread, NULL, hold, &held) != 0)
        give_up("pthread_create");
    if (read(go, &byte, 1) == 1)
        (void)mmap(NULL, PAGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (;;)
        (void)pause();
}

/* True when the first thread of the process sleeps in the kernel: what it waits for is the lock. */
static int is_stuck(pid_t pid)
{
    char path[64], text[512] = "";
    const char *p;
    int fd;

    (void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
        give_up(path);
    (void)close(fd);
    p = strrchr(text, ')');
    return p && p[2] == 'D';
}

/* Answers until the page is requested, then tells the other process to go on. */
static void serve(int fd, pid_t pid, int go)
{
    static char buf[FUSE_MIN_READ_BUFFER + PAGE_BYTES];
    const struct fuse_in_header *in = (const struct fuse_in_header *)(const void *)buf;
    const struct timespec moment = {.tv_nsec = 1000000};

    do {
        ssize_t n = read(fd, buf, sizeof(buf));

        if (n < 0 && errno != EINTR && errno != ENOENT)
            give_up("/dev/fuse");
        if (n < (ssize_t)sizeof(*in))
            in = NULL;
        else
            serve_one(fd, in = (const struct fuse_in_header *)(const void *)buf, buf + sizeof(*in));
    } while (!in || in->opcode != FUSE_READ);
    (void)!write(go, "", 1);
    while (!is_stuck(pid))
        (void)nanosleep(&moment, NULL);
}

int main(int argc, char **argv)
{
    char directory[] = "/tmp/np-hang-XXXXXX", path[64];
    int fuse, go[2];
    pid_t pid;

    if (argc != 2)
        return 2;
    if (!mkdtemp(directory) || pipe(go) < 0)
        give_up(directory);
    fuse = mount_it(directory);
    (void)snprintf(path, sizeof(path), "%s/x", directory);
    pid = fork();
    if (pid == 0) {
        (void)close(fuse);
        hang(path, (uid_t)atoi(argv[1]), go[0]);
    }
    serve(fuse, pid, go[1]);
    (void)printf("ready %d\n", pid);
    (void)fflush(stdout);
    /* The name is no longer needed. */
    (void)umount2(directory, MNT_DETACH);
    (void)rmdir(directory);
    for (;;)
        (void)pause();
}
