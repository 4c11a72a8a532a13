/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The real calls, on a child of this test. With one node, memory is "moved" to where it is, which the kernel reports
 * as done. With several it really goes there and back. The child checks that its memory has kept its content. */

#include "act/mover/walk.h"
#include "base/root.h"
#include "kernel/procstat.h"
#include "unit-test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PRIVATE_BYTES ((size_t)24 << 20)
#define SHARED_BYTES  ((size_t)3 << 20)
#define WAIT_MS       60000

typedef struct Live {
    int root_fd;
    Topology *topology;
    hwloc_bitmap_t to;
    MoverOrder order;
    pid_t child;
    int go; /* closed: the child checks its memory and ends */
} Live;

/*
 * The child
 */

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return *state >> 16;
}

static void fill(uint64_t *words, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes / sizeof(*words); i++)
        words[i] = next_random(&seed);
}

static bool is_filled(const uint64_t *words, size_t bytes, uint64_t seed)
{
    for (size_t i = 0; i < bytes / sizeof(*words); i++)
        if (words[i] != next_random(&seed))
            return false;
    return true;
}

static void *map_shared(void)
{
    int fd = memfd_create("shared", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, (off_t)SHARED_BYTES) < 0)
        _exit(3);
    return mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

/* Tells that the child is ready, and checks its memory when it is to end. */
typedef struct Rest {
    int ready, go;
    const uint64_t *private, *shared;
} Rest;

static void *child_rest(void *userdata)
{
    const Rest *rest = userdata;
    char c = 0;

    if (write(rest->ready, &c, 1) != 1)
        _exit(3);
    while (read(rest->go, &c, 1) < 0 && errno == EINTR)
        continue;
    _exit(is_filled(rest->private, PRIVATE_BYTES, 1) && is_filled(rest->shared, SHARED_BYTES, 2) ? 0 : 1);
}

/* The same in another thread, after the first one has ended. */
static void *child_rest_alone(void *userdata)
{
    int root_fd = root_open("/");
    ProcStat stat;

    while (procstat_read_task(root_fd, getpid(), 0, &stat) == 0 && !procstat_has_ended(&stat))
        (void)sched_yield();
    return child_rest(userdata);
}

static void child_main(Rest *rest, bool alone)
{
    pthread_t thread;
    uint64_t *private, *shared;
    char *end;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    private = mmap(NULL, PRIVATE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    shared = map_shared();
    if (private == MAP_FAILED || shared == MAP_FAILED)
        _exit(3);
    end = (char *)private + PRIVATE_BYTES;
    /* Half of it in huge pages, if there are any; the kernel must not make others meanwhile. The locked page
     * is a mapping of its own, and in the half of small pages: if two mappings shared a huge page, all of it
     * would move, but the mover would count only what it asked for. */
    (void)madvise(private, PRIVATE_BYTES / 2, MADV_HUGEPAGE);
    (void)madvise(end - PRIVATE_BYTES / 2, PRIVATE_BYTES / 2, MADV_NOHUGEPAGE);
    fill(private, PRIVATE_BYTES, 1);
    fill(shared, SHARED_BYTES, 2);
    (void)madvise(private, PRIVATE_BYTES, MADV_NOHUGEPAGE);
    if (mlock(end - 4096, 4096) < 0 && errno != EPERM && errno != ENOMEM)
        _exit(3);
    rest->private = private;
    rest->shared = shared;
    if (!alone)
        (void)child_rest(rest);
    if (pthread_create(&thread, NULL, child_rest_alone, rest) != 0)
        _exit(3);
    (void)syscall(SYS_exit, 0); /* of this thread alone */
    abort();
}

static uint64_t start_of(const Live *live, pid_t pid)
{
    ProcStat stat;

    assert_int_equal(procstat_read_task(live->root_fd, pid, 0, &stat), 0);
    return stat.start_ticks;
}

static void start(Live *live, bool alone)
{
    int ready[2], go[2];
    char c;

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    live->child = fork();
    assert_true(live->child >= 0);
    if (live->child == 0) {
        static Rest rest; /* outlives the first thread */

        (void)close(go[1]);
        rest = (Rest){.ready = ready[1], .go = go[0]};
        child_main(&rest, alone);
    }
    (void)close(ready[1]);
    (void)close(go[0]);
    live->go = go[1];
    assert_int_equal(read(ready[0], &c, 1), 1);
    (void)close(ready[0]);
    live->order.pid = live->child;
    live->order.start_ticks = start_of(live, live->child);
}

static void start_child(Live *live)
{
    start(live, false);
}

/* Ends the child, whose memory must be as it was written. */
static void end_child(Live *live)
{
    int status;

    (void)close(live->go);
    live->go = -1;
    assert_int_equal(waitpid(live->child, &status, 0), live->child);
    live->child = 0;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/*
 * Fixture
 */

/* Whether pages may be queried and moved here at all; containers forbid it. */
static bool is_allowed(void)
{
    static char page[4096];
    void *pages[1] = {page};
    int root_fd = -1, status = -1;

    page[0] = 1;
    return mover_ops_kernel.move_pages(&root_fd, getpid(), 1, pages, NULL, &status, false) == 0 &&
           status >= 0;
}

static int setup(void **state)
{
    const TopologyOptions options = {.whole_machine = true};
    Live *live = calloc(1, sizeof(*live));
    char *error = NULL;

    if (!live)
        return -1;
    *state = live;
    live->go = -1;
    live->root_fd = root_open("/");
    live->to = hwloc_bitmap_alloc();
    if (live->root_fd < 0 || !live->to || topology_load(&options, &live->topology, &error) < 0)
        return -1;
    live->order.to_nodes = live->to;
    return 0;
}

static int teardown(void **state)
{
    CLEANUP_FREE Live *live = *state;

    if (live->child > 0) {
        (void)kill(live->child, SIGKILL);
        (void)waitpid(live->child, NULL, 0);
    }
    if (live->go >= 0)
        (void)close(live->go);
    topology_unref(live->topology);
    hwloc_bitmap_free(live->to);
    (void)close(live->root_fd);
    return 0;
}

/* Returns the first node with memory after `after`; -1: there is none. */
static int memory_node(const Live *live, int after)
{
    for (uint32_t i = (uint32_t)(after + 1); i < live->topology->n_nodes; i++)
        if (live->topology->nodes[i].memory_bytes > 0)
            return (int)i;
    return -1;
}

static MoverResult carry_out(Live *live, int node)
{
    Mover *mover = NULL;
    MoverResult result;
    struct pollfd pfd;
    uint64_t id;

    assert_int_equal(hwloc_bitmap_only(live->to, (unsigned)node), 0);
    assert_int_equal(mover_new(NULL, NULL, live->root_fd, live->topology, &mover), 0);
    assert_int_equal(mover_submit(mover, &live->order, &id), 0);
    pfd = (struct pollfd){.fd = mover_fd(mover), .events = POLLIN};
    assert_int_equal(poll(&pfd, 1, WAIT_MS), 1);
    assert_int_equal(mover_collect(mover, &result), 1);
    assert_int_equal(result.id, id);
    mover_free(mover);
    return result;
}

/*
 * Tests
 */

static void test_order(void **state)
{
    Live *live = *state;
    MoverResult result;

    if (!is_allowed())
        skip();
    start_child(live);
    result = carry_out(live, memory_node(live, -1));
    assert_int_equal(result.outcome, MOVER_DONE);
    assert_true(result.account.n_asked > 0);
    /* Every process maps programs, libraries and pages of the kernel. */
    assert_true(result.account.refused_bytes[MOVER_REASON_FILE] > 0);
    assert_true(result.account.refused_bytes[MOVER_REASON_DEVICE] > 0);
    assert_int_equal(result.account.refused_bytes[MOVER_REASON_FOREIGN], 0);
    assert_int_equal(result.account.refused_bytes[MOVER_REASON_OTHER], 0);
    if (memory_node(live, memory_node(live, -1)) < 0) {
        assert_int_equal(result.account.moved_bytes, 0);
        assert_int_equal(result.account.n_calls, 0);
    }
    end_child(live);
}

/* Several requests: pages that reclaim or compaction isolates for a moment are left to the next one, whether
 * the kernel reports them as busy or as absent. */
#define ORDERS_MAX 200U
#define QUIET      3U

/* Returns how much of what the child wrote is on a node, according to the kernel. */
static uint64_t bytes_on(const Live *live, int node)
{
    char path[64], name[32], line[4096];
    uint64_t sum = 0;
    FILE *f;

    (void)snprintf(path, sizeof(path), "/proc/%d/numa_maps", live->child);
    (void)snprintf(name, sizeof(name), " N%u=", live->topology->nodes[node].os_index);
    f = fopen(path, "re");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f)) {
        const char *pages = strstr(line, name), *kb = strstr(line, " kernelpagesize_kB=");

        if (pages && kb && (strstr(line, " anon=") || strstr(line, "/memfd:shared")))
            sum += (strtoull(pages + strlen(name), NULL, 10) * strtoull(strchr(kb, '=') + 1, NULL, 10)) << 10;
    }
    assert_int_equal(fclose(f), 0);
    return sum;
}

/* Carries out requests to this node until several in a row find nothing to move, and all is there. */
static void bring_all(Live *live, int node)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    const uint64_t expected = PRIVATE_BYTES + SHARED_BYTES;
    const uint64_t away = expected - MIN(expected, bytes_on(live, node));
    uint64_t moved = 0, busy = 1, now = 1;
    unsigned n_quiet = 0;

    for (unsigned i = 0; i < ORDERS_MAX && (n_quiet < QUIET || bytes_on(live, node) < expected); i++) {
        MoverResult result;

        if (now == 0)
            (void)nanosleep(&pause, NULL);
        result = carry_out(live, node);
        assert_int_equal(result.outcome, MOVER_DONE);
        now = result.account.moved_bytes;
        moved += now;
        busy = result.account.refused_bytes[MOVER_REASON_BUSY];
        n_quiet = busy + now > 0 ? 0 : n_quiet + 1;
        for (int k = 0; k < MOVER_REASON_MAX; k++)
            if (k > MOVER_REASON_DEVICE && result.account.refused_bytes[k] > 0)
                print_message("# order %u to %d: moved %" PRIu64 ", refused %" PRIu64 " (%d)\n", i, node, now,
                              result.account.refused_bytes[k], k);
    }
    print_message("# to %d: moved %" PRIu64 ", there %" PRIu64 " of %" PRIu64 "\n", node, moved,
                  bytes_on(live, node), expected);
    assert_int_equal(busy, 0);
    assert_true(bytes_on(live, node) >= expected);
    assert_true(moved >= away);
}

/* Between two nodes; with one node, the memory is there already. */
static void test_there_and_back(void **state)
{
    Live *live = *state;
    int here = memory_node(live, -1), there = memory_node(live, here);

    if (!is_allowed())
        skip();
    start_child(live);
    bring_all(live, here);
    if (there < 0)
        assert_int_equal(carry_out(live, here).account.n_calls, 0);
    for (int i = 0; i < 4 && there >= 0; i++)
        bring_all(live, i % 2 ? here : there);
    end_child(live);
}

/* The first thread has ended: only another one gives access to the memory. */
static void test_first_thread_has_ended(void **state)
{
    Live *live = *state;
    pid_t pid = 0;
    MoverResult result;
    int fd;

    if (!is_allowed())
        skip();
    start(live, true);
    result = carry_out(live, memory_node(live, -1));
    assert_int_equal(result.outcome, MOVER_DONE);
    assert_true(result.account.n_asked > 0);
    assert_true(result.account.refused_bytes[MOVER_REASON_FILE] > 0);
    fd = mover_ops_kernel.open_process(&live->root_fd, live->child, live->order.start_ticks, &pid);
    assert_true(fd >= 0);
    assert_int_not_equal(pid, live->child);
    assert_true(mover_ops_kernel.is_alive(&live->root_fd, fd));
    end_child(live);
    assert_false(mover_ops_kernel.is_alive(&live->root_fd, fd));
    (void)close(fd);
}

/* A PID that belongs to another process by now, or to none, is left alone. */
static void test_gone(void **state)
{
    Live *live = *state;

    if (!is_allowed())
        skip();
    start_child(live);
    live->order.start_ticks++;
    assert_int_equal(carry_out(live, memory_node(live, -1)).outcome, MOVER_GONE);
    live->order.start_ticks--;
    end_child(live);
    assert_int_equal(carry_out(live, memory_node(live, -1)).outcome, MOVER_GONE);
}

/* A process that has exited, and was not waited for. */
static void test_zombie(void **state)
{
    Live *live = *state;
    siginfo_t info;

    if (!is_allowed())
        skip();
    start_child(live);
    assert_int_equal(kill(live->child, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)live->child, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(carry_out(live, memory_node(live, -1)).outcome, MOVER_GONE);
}

static bool go_on(void *userdata, const MoverAccount *account)
{
    return true;
}

static void no_pause(void *userdata, uint64_t usec)
{
}

/* Names all pages to the kernel as if they were elsewhere. Those that are there already count as moved. */
static MoverAccount walk_all(Live *live, uint32_t pages_limit, unsigned *ret_steps)
{
    const WalkHost host = {.go_on = go_on, .pause = no_pause};
    MoverGate gate;
    WalkNode node = {
        .ops = &mover_ops_kernel,
        .context = &live->root_fd,
        .gate = &gate,
        .os_index = live->topology->nodes[memory_node(live, -1)].os_index,
        .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
        .vast_bytes = UINT64_MAX,
    };
    hwloc_bitmap_t accept = hwloc_bitmap_alloc();
    MoverOutcome outcome = MOVER_OUTCOME_INVALID;
    MoverAccount account;
    Walk *walk = NULL;
    int error = 0;

    assert_non_null(accept);
    assert_int_equal(mover_ops_kernel.memory_device(NULL, &node.memory_device), 0);
    assert_int_equal(walk_node_init(&node), 0);
    mover_gate_init(&gate);
    node.pages_limit = pages_limit;
    assert_int_equal(walk_new(&live->order, accept, 0, 1, &walk), 0);
    while (walk_step(walk, &node, &host, &outcome, &error))
        (*ret_steps)++;
    assert_int_equal(error, 0);
    assert_int_equal(outcome, MOVER_DONE);
    account = *walk_account(walk);
    walk_free(walk);
    walk_node_done(&node);
    mover_gate_done(&gate);
    hwloc_bitmap_free(accept);
    return account;
}

static void test_same_node(void **state)
{
    Live *live = *state;
    MoverAccount account;
    unsigned n_steps = 0;

    if (!is_allowed())
        skip();
    start_child(live);
    account = walk_all(live, 64, &n_steps);
    assert_true(n_steps > 1);
    assert_true(account.n_calls > 1);
    assert_true(account.moved_bytes >= PRIVATE_BYTES);
    assert_int_equal(account.refused_bytes[MOVER_REASON_OTHER], 0);
    end_child(live);
}

static uint64_t effective_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    assert_int_equal(syscall(SYS_capget, &header, data), 0);
    return data[0].effective | (uint64_t)data[1].effective << 32;
}

/* migrate_pages(2): the thread drops a capability for it, and regains it afterwards. */
static void test_migrate(void **state)
{
    Live *live = *state;
    uint64_t before = effective_capabilities();
    hwloc_bitmap_t from = hwloc_bitmap_alloc();
    uint32_t os_index = live->topology->nodes[memory_node(live, -1)].os_index;
    pid_t pid;

    assert_non_null(from);
    if (!is_allowed()) {
        hwloc_bitmap_free(from);
        skip();
    }
    start_child(live);
    pid = live->child;
    assert_int_equal(hwloc_bitmap_only(from, os_index), 0);
    assert_true(mover_ops_kernel.migrate_pages(&live->root_fd, pid, from, os_index) >= 0);
    assert_int_equal(effective_capabilities(), before);
    /* There is no such node: the call's own error is returned, and the capability is regained, too. */
    assert_true(mover_ops_kernel.migrate_pages(&live->root_fd, pid, from, 4000) < 0);
    assert_int_equal(mover_ops_kernel.migrate_pages(&live->root_fd, pid, from, 1000000), -E2BIG);
    assert_int_equal(effective_capabilities(), before);
    end_child(live);
    assert_int_equal(mover_ops_kernel.migrate_pages(&live->root_fd, pid, from, os_index), -ESRCH);
    assert_int_equal(effective_capabilities(), before);
    hwloc_bitmap_free(from);
}

static void test_open_process(void **state)
{
    Live *live = *state;
    uint64_t own = start_of(live, getpid());
    pid_t pid = 0;
    int fd = mover_ops_kernel.open_process(&live->root_fd, getpid(), own, &pid);

    assert_true(fd >= 0);
    assert_int_equal(pid, getpid());
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(mover_ops_kernel.is_alive(&live->root_fd, fd));
    (void)close(fd);
    assert_int_equal(mover_ops_kernel.open_process(&live->root_fd, getpid(), own + 1, &pid), -ESRCH);
    assert_int_equal(mover_ops_kernel.open_process(&live->root_fd, 1 << 22, own, &pid), -ESRCH);
}

/* What is read of this machine is plausible. */
static void test_room(void **state)
{
    Live *live = *state;
    uint32_t os_index = live->topology->nodes[memory_node(live, -1)].os_index;
    CLEANUP_FREE char *meminfo = NULL, *zoneinfo = NULL;
    NodeMemory memory;
    uint64_t high = 0;
    char path[64];

    (void)snprintf(path, sizeof(path), "sys/devices/system/node/node%u/meminfo", os_index);
    if (mover_ops_kernel.read_file(&live->root_fd, path, NODE_MEMORY_TEXT_SIZE, &meminfo) < 0)
        skip();
    assert_int_equal(node_memory_parse(meminfo, &memory), 0);
    assert_true(memory.total_bytes > 0 && memory.free_bytes <= memory.total_bytes);
    assert_true(node_memory_available(&memory) - memory.free_bytes <= memory.total_bytes);
    assert_int_equal(mover_ops_kernel.read_file(&live->root_fd, "proc/zoneinfo", (size_t)4 << 20, &zoneinfo),
                     0);
    assert_int_equal(mover_zoneinfo_parse(zoneinfo, os_index, &high), 0);
    assert_true(high > 0 && high * 4096 < memory.total_bytes);
}

/* A mover thread keeps to its node and nice value, and leaves those of this thread alone. */
static void test_thread(void **state)
{
    Live *live = *state;
    int before = getpriority(PRIO_PROCESS, 0);

    if (!is_allowed())
        skip();
    start_child(live);
    live->order.nice = 19;
    assert_int_equal(carry_out(live, memory_node(live, -1)).outcome, MOVER_DONE);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), before);
    end_child(live);
}

TEST_MAIN(setup, teardown, test_order, test_there_and_back, test_first_thread_has_ended, test_gone,
          test_zombie, test_same_node, test_migrate, test_open_process, test_room, test_thread)
