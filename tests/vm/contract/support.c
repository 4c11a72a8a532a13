/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "support.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

#define CHILDREN_MAX 64U
#define PATH_SIZE    512U
#define LIMIT_SEC    60

static pid_t children[CHILDREN_MAX];
static size_t n_children;

bool kernel_since(unsigned major, unsigned minor)
{
    struct utsname name;
    unsigned a = 0, b = 0;

    assert_int_equal(uname(&name), 0);
    assert_int_equal(sscanf(name.release, "%u.%u", &a, &b), 2);
    return a > major || (a == major && b >= minor);
}

__attribute__((format(printf, 1, 0))) static void say(const char *format, va_list args)
{
    (void)printf("# ");
    (void)vprintf(format, args);
    (void)printf("\n");
    (void)fflush(stdout);
}

void contract_skip(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args);
    va_end(args);
    skip();
    abort(); /* skip() does not return, but its declaration does not say so */
}

void contract_note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(format, args);
    va_end(args);
}

void need_guest(void)
{
    if (!file_exists("/lab/info.json"))
        contract_skip("not in a guest of the lab");
}

/*
 * Files of the kernel
 */

static char *read_path(const char *path)
{
    static char buffers[4][TEXT_SIZE];
    static unsigned next;
    char *text = buffers[next++ % ARRAY_SIZE(buffers)];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n = -1;

    if (fd < 0)
        return NULL;
    while (len < TEXT_SIZE - 1 && (n = read(fd, text + len, TEXT_SIZE - 1 - len)) > 0)
        len += (size_t)n;
    (void)close(fd);
    text[len] = '\0';
    return n < 0 ? NULL : text;
}

static int write_path(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC), r = 0;

    if (fd < 0)
        return -errno;
    /* An empty text is written as a newline: a write of no bytes would not reach the kernel. */
    if (write(fd, *text ? text : "\n", *text ? strlen(text) : 1) < 0)
        r = -errno;
    (void)close(fd);
    return r;
}

#define FORMAT_PATH(path, format)                          \
    do {                                                   \
        va_list args;                                      \
                                                           \
        va_start(args, format);                            \
        (void)vsnprintf(path, sizeof(path), format, args); \
        va_end(args);                                      \
    } while (0)

char *file_read(const char *format, ...)
{
    char path[PATH_SIZE];

    FORMAT_PATH(path, format);
    return read_path(path);
}

int file_write(const char *text, const char *format, ...)
{
    char path[PATH_SIZE];

    FORMAT_PATH(path, format);
    return write_path(path, text);
}

bool file_exists(const char *format, ...)
{
    char path[PATH_SIZE];

    FORMAT_PATH(path, format);
    return access(path, F_OK) == 0;
}

static const char *need_text(const char *path)
{
    const char *text = read_path(path);

    if (!text)
        fail_msg("%s: %s", path, strerror(errno));
    return text;
}

uint64_t file_number(const char *format, ...)
{
    char path[PATH_SIZE];

    FORMAT_PATH(path, format);
    return strtoull(need_text(path), NULL, 10);
}

uint64_t file_list(const char *format, ...)
{
    char path[PATH_SIZE];

    FORMAT_PATH(path, format);
    return list_parse(need_text(path));
}

uint64_t list_parse(const char *text)
{
    uint64_t bits = 0;

    while (*text >= '0' && *text <= '9') {
        char *end;
        unsigned long first = strtoul(text, &end, 10), last = first;

        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long i = first; i <= last && i < 64; i++)
            bits |= BIT(i);
        text = *end == ',' ? end + 1 : end;
    }
    return bits;
}

const char *list_format(uint64_t bits)
{
    static char text[256];
    size_t len = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < 64; i++)
        if (bits & BIT(i))
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u", len > 0 ? "," : "", i);
    return text;
}

bool text_number(const char *text, const char *key, int64_t *ret)
{
    size_t len = strlen(key);

    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, len) == 0) {
            *ret = strtoll(line + len + strspn(line + len, " \t:"), NULL, 10);
            return true;
        }
    }
    return false;
}

unsigned bit_count(uint64_t bits)
{
    return (unsigned)__builtin_popcountll(bits);
}

unsigned bit_first(uint64_t bits)
{
    assert_true(bits != 0);
    return (unsigned)__builtin_ctzll(bits);
}

unsigned bit_last(uint64_t bits)
{
    assert_true(bits != 0);
    return 63U - (unsigned)__builtin_clzll(bits);
}

/*
 * Tasks
 */

uint64_t mask_get(pid_t tid)
{
    uint64_t words[16] = {0};

    if (syscall(SYS_sched_getaffinity, tid, sizeof(words), words) < 0)
        fail_msg("sched_getaffinity: %s", strerror(errno));
    return words[0];
}

int mask_set(pid_t tid, uint64_t mask)
{
    uint64_t words[16] = {mask};

    if (mask == ~UINT64_C(0))
        memset(words, 0xff, sizeof(words));
    return syscall(SYS_sched_setaffinity, tid, sizeof(words), words) < 0 ? -errno : 0;
}

bool task_stat(pid_t tid, TaskStat *ret)
{
    const char *text = file_read("/proc/%d/stat", tid), *s = text ? strrchr(text, ')') : NULL;
    unsigned long long f[40] = {0};

    if (!s)
        return false;
    ret->state = s[2];
    s += 3;
    for (unsigned i = 4; i < ARRAY_SIZE(f); i++) {
        char *end;

        f[i] = strtoull(s, &end, 10);
        s = end;
    }
    ret->parent = (pid_t)f[4];
    ret->flags = (uint32_t)f[9];
    ret->cpu_ticks = f[14] + f[15];
    ret->threads = (uint32_t)f[20];
    ret->start_ticks = f[22];
    ret->processor = (uint32_t)f[39];
    return true;
}

bool task_schedstat(pid_t tid, uint64_t ret[3])
{
    const char *text = file_read("/proc/%d/schedstat", tid);
    unsigned long long v[3];

    if (!text || sscanf(text, "%llu %llu %llu", &v[0], &v[1], &v[2]) != 3)
        return false;
    for (unsigned i = 0; i < 3; i++)
        ret[i] = v[i];
    return true;
}

pid_t child_start(void (*body)(void *), void *userdata)
{
    pid_t parent = getpid(), pid;

    assert_true(n_children < CHILDREN_MAX);
    (void)fflush(stdout);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
            _exit(1);
        body(userdata);
        _exit(0);
    }
    children[n_children++] = pid;
    return pid;
}

static void spin(void *userdata)
{
    for (volatile uint64_t n = 0;; n++)
        ;
}

static void sleep_forever(void *userdata)
{
    for (;;)
        (void)pause();
}

pid_t child_spin(uint64_t mask)
{
    pid_t pid = child_start(spin, NULL);

    assert_int_equal(mask_set(pid, mask), 0);
    return pid;
}

static bool sleeps(void *userdata)
{
    TaskStat stat;

    return task_stat(*(pid_t *)userdata, &stat) && stat.state == 'S';
}

pid_t child_sleep(uint64_t mask)
{
    pid_t pid = child_start(sleep_forever, NULL);

    assert_int_equal(mask_set(pid, mask), 0);
    assert_true(eventually(sleeps, &pid));
    return pid;
}

static void end_one(pid_t pid)
{
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
}

void child_end(pid_t pid)
{
    for (size_t i = 0; i < n_children; i++)
        if (children[i] == pid) {
            end_one(pid);
            children[i] = children[--n_children];
            return;
        }
}

void children_end(void)
{
    while (n_children > 0)
        end_one(children[--n_children]);
}

int children_teardown(void **state)
{
    children_end();
    return 0;
}

void *shared_alloc(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

void nap(void)
{
    const struct timespec moment = {.tv_nsec = 5000000};

    (void)nanosleep(&moment, NULL);
}

static int64_t now_sec(void)
{
    struct timespec ts;

    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &ts), 0);
    return ts.tv_sec;
}

bool eventually(bool (*condition)(void *), void *userdata)
{
    int64_t end = now_sec() + LIMIT_SEC;

    while (!condition(userdata)) {
        if (now_sec() >= end)
            return false;
        nap();
    }
    return true;
}
