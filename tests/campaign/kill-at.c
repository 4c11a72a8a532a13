/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Preloaded (ld.so(8)), it kills the program with SIGKILL before call number NUMAPLACE_KILL_AT of those that
 * change something. All such calls are counted together, and the calls before are complete. ptrace(2) could do
 * this, too, but it stops the program at each of its other calls as well, which are a hundred times as many. */

#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static void reach(void)
{
    static atomic_ulong n_calls;
    const char *at = getenv("NUMAPLACE_KILL_AT");

    if (at && atomic_fetch_add(&n_calls, 1) + 1 == strtoul(at, NULL, 10))
        (void)kill(getpid(), SIGKILL);
}

/* The original function, of the same type. */
#define NEXT(name) ((__typeof__(&(name)))dlsym(RTLD_NEXT, #name))

#define PUBLIC __attribute__((visibility("default")))

#define CHANGES(type, name, parameters, ...) \
    PUBLIC type name parameters              \
    {                                        \
        reach();                             \
        return NEXT(name)(__VA_ARGS__);      \
    }

int rename(const char *from, const char *to);
int renameat(int from_fd, const char *from, int to_fd, const char *to);
int mkdir(const char *path, mode_t mode);
long mbind(void *start, unsigned long len, int mode, const unsigned long *nodes, unsigned long max,
           unsigned flags);
long move_pages(int pid, unsigned long n, void **pages, const int *nodes, int *status, int flags);
long migrate_pages(int pid, unsigned long max, const unsigned long *from, const unsigned long *to);

CHANGES(ssize_t, write, (int fd, const void *data, size_t len), fd, data, len)
CHANGES(ssize_t, pwrite, (int fd, const void *data, size_t len, off_t at), fd, data, len, at)
CHANGES(int, ftruncate, (int fd, off_t len), fd, len)
CHANGES(int, rename, (const char *from, const char *to), from, to)
CHANGES(int, renameat, (int from_fd, const char *from, int to_fd, const char *to), from_fd, from, to_fd, to)
CHANGES(int, linkat, (int from_fd, const char *from, int to_fd, const char *to, int flags), from_fd, from,
        to_fd, to, flags)
CHANGES(int, unlink, (const char *path), path)
CHANGES(int, unlinkat, (int fd, const char *path, int flags), fd, path, flags)
CHANGES(int, mkdir, (const char *path, mode_t mode), path, mode)
CHANGES(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), fd, message, flags)
CHANGES(long, mbind,
        (void *start, unsigned long len, int mode, const unsigned long *nodes, unsigned long max,
         unsigned flags),
        start, len, mode, nodes, max, flags)
CHANGES(long, move_pages, (int pid, unsigned long n, void **pages, const int *nodes, int *status, int flags),
        pid, n, pages, nodes, status, flags)
CHANGES(long, migrate_pages, (int pid, unsigned long max, const unsigned long *from, const unsigned long *to),
        pid, max, from, to)

/* Masks are set through syscall(2). */
PUBLIC long syscall(long number, ...)
{
    long a[6];
    va_list ap;

    va_start(ap, number);
    for (unsigned i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    if (number == SYS_sched_setaffinity || number == SYS_move_pages)
        reach();
    return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
