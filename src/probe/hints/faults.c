/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Write hint faults: the kernel's NUMA hint faults, made from userspace. Writing "4" to
 * /proc/PID/clear_refs write-protects all pages of the process. The next write to each takes a short fault, for which
 * a software event records thread, address and CPU. Neither kernel.numa_balancing nor hardware counters are needed.
 *
 *     round:  read rings --> threads --> blocks: on which nodes? --> count --> protect again, or not yet
 *
 * A round has one sample per page: one for all 2 MB of a huge page (which is not split), and one for each small page,
 * thinned out when they are too many for the rings. A page written once looks like one written all the time. Of the
 * threads that share a page only the first is seen. Reads are not seen at all.
 *
 * Protecting walks all page tables in one go, with the address space locked against faults and mappings; no window can
 * be given. So it is not done
 *   - while pages are moved, or the process touches memory for the first time. Both want the same lock, and
 *     protecting then takes 10 to 20 times as long, up to 350 ms. Rings go on recording first touches, and
 *     writes to pages still protected;
 *   - when it would take more than 20 ms, by its cost per page, or took that three times in a row;
 *   - before 32 times its cost has passed, faults included. */

#include "base/root.h"
#include "base/time.h"
#include "probe/hints/pace.h"
#include "probe/hints/rings.h"
#include "probe/hints/trial.h"
#include "probe/hints/watch.h"
#include "probe/memory/evidence.h"
#include "probe/memory/region-maps.h"
#include "probe/probe.h"
#include "probe/tasks/cgroup.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

/* A process that grows by more between two rounds is taken to touch memory for the first time. */
#define GROWTH_PAGES 512U
#define GROWTH_SHARE 64U

/* Shortest time over which growth is judged. */
#define GROWTH_USEC 50000U

/* Blocks checked for another user of soft-dirty bits, and rounds in a row that must show one. */
#define WATCHED        16U
#define SUSPICIOUS_MAX 2U

/* A single protection that takes too long may be an accident; this many in a row are not. */
#define LONG_MAX_IN_A_ROW 3U

/* Pages per call of move_pages(2), which holds the lock of the address space shared: 1 ms. */
#define PLACES_PER_CALL 4096U

/* Readings of numa_maps take at most one part in DESCRIBE_SHARE of a CPU, and are at least DESCRIBE_MIN_USEC apart. */
#define DESCRIBE_SHARE    100U
#define DESCRIBE_MIN_USEC (10 * USEC_PER_SEC)

typedef struct HintPlaces {
    uint32_t asked[PLACES_PER_CALL]; /* indices of blocks */
    void *pages[PLACES_PER_CALL];
    int status[PLACES_PER_CALL];
    uint64_t describe_usec; /* when to read numa_maps next */
} HintPlaces;

typedef struct HintFaults {
    EvidenceTarget target;
    EvidenceMachine machine;
    int proc_fd, cgroup_fd;
    pid_t memory_pid;
    char *cgroup; /* to which cgroup_fd belongs; NULL: not known */
    HintRings *rings;
    pid_t *tids;
    size_t tids_capacity;
    HintPlaces places;
    uint64_t rss_pages;
    uint64_t sized_pages, sized_usec; /* rss_pages when growth was last judged, and when that was */
    uint64_t rest_until_usec;
    uint32_t n_long; /* protections in a row that took too long */
    uint32_t n_suspicious;
    bool growing;   /* as of sized_usec */
    bool protected; /* at least once */
} HintFaults;

/*
 * Detection
 */

static const char *const outcomes[] = {
    [HINT_TRIAL_NO_SOFT_DIRTY] = "this kernel has no soft-dirty bits (CONFIG_MEM_SOFT_DIRTY)",
    [HINT_TRIAL_NO_PROC] = "soft-dirty bits cannot be used",
    [HINT_TRIAL_NO_EVENT] = "page faults cannot be sampled (CAP_PERFMON or kernel.perf_event_paranoid)",
    [HINT_TRIAL_NO_RING] = "no memory may be locked for samples (kernel.perf_event_mlock_kb)",
    [HINT_TRIAL_NO_SAMPLES] = "writes to protected pages are not reported",
    [HINT_TRIAL_NO_CHILD] = "the trial could not run",
};

static void detect(int root_fd, bool live, EvidenceMachine *machine)
{
    EvidenceAbility *ability = &machine->abilities[EVIDENCE_WRITE];
    HintTrial trial;

    if (!live) {
        (void)snprintf(ability->why_not, sizeof(ability->why_not), "this is a captured machine");
        return;
    }
    hint_trial(&trial);
    if (trial.outcome == HINT_TRIAL_WORKS) {
        ability->works = true;
        machine->exclude_kernel = trial.exclude_kernel;
        machine->fault_nsec = trial.fault_nsec;
        machine->protect_nsec = trial.protect_nsec;
        return;
    }
    (void)snprintf(ability->why_not, sizeof(ability->why_not), "%s%s%s", outcomes[trial.outcome],
                   trial.error ? ": " : "", trial.error ? strerror(trial.error) : "");
}

/*
 * Beginning
 */

static void end(void *context)
{
    HintFaults *faults = context;

    (void)hint_rings_free(faults->rings);
    close_p(&faults->proc_fd);
    close_p(&faults->cgroup_fd);
    free(faults->cgroup);
    free(faults->tids);
    free(faults);
}

/* Its control group, or the nearest one above that has all its threads; NULL when it cannot be read. */
static char *read_cgroup(const HintFaults *faults)
{
    CLEANUP_FREE char *text = malloc(CGROUP_TEXT_SIZE);
    CgroupPaths paths;
    char *path;

    if (!text || root_read(faults->proc_fd, "cgroup", text, CGROUP_TEXT_SIZE) < 0 ||
        cgroup_parse(text, &paths) < 0)
        return NULL;
    path = strdup(paths.main);
    if (path)
        cgroup_leave_threaded(faults->target.root_fd, CGROUP_ROOT, path);
    return path;
}

/* Opens the directory of its control group. -1 if that is the root or cannot be opened: rings of CPUs, if
 * needed, then see the whole machine. */
static int open_cgroup(const HintFaults *faults, const char *cgroup)
{
    CLEANUP_FREE char *path = NULL;

    if (!cgroup || strcmp(cgroup, "/") == 0 || asprintf(&path, CGROUP_ROOT "%s", cgroup) < 0)
        return -1;
    return openat(faults->target.root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Takes `cgroup`. 0; or -ENOMEM, and the rings there are stay. */
static int make_rings(HintFaults *faults, char *cgroup)
{
    HintRingsOptions options = {
        .n_cpus = faults->target.topology->cpu_limit,
        .cgroup_fd = open_cgroup(faults, cgroup),
        .exclude_kernel = faults->machine.exclude_kernel,
        .n_spared = PROBE_DESCRIPTORS_RESERVE,
    };
    HintRings *rings;
    int r = hint_rings_new(&options, &rings);

    if (r < 0) {
        close_p(&options.cgroup_fd);
        free(cgroup);
        return r;
    }
    (void)hint_rings_free(faults->rings);
    close_p(&faults->cgroup_fd);
    free(faults->cgroup);
    faults->rings = rings;
    faults->cgroup_fd = options.cgroup_fd;
    faults->cgroup = cgroup;
    return 0;
}

static int get_ready(HintFaults *faults)
{
    int r;

    faults->proc_fd = evidence_open_process(&faults->target, &faults->memory_pid);
    if (faults->proc_fd < 0)
        return faults->proc_fd == -ESRCH ? EVIDENCE_E_GONE : faults->proc_fd;
    if (!faults->target.insist && !faults->target.marked) {
        r = hint_watch_before(faults->proc_fd);
        if (r != 0)
            return r < 0 ? r : EVIDENCE_E_TRACKED;
    }
    return make_rings(faults, read_cgroup(faults));
}

static int begin(const EvidenceTarget *target, const EvidenceMachine *machine, void **ret_context)
{
    HintFaults *faults;
    int r;

    if (!machine->abilities[EVIDENCE_WRITE].works)
        return -EOPNOTSUPP;
    faults = calloc(1, sizeof(*faults));
    if (!faults)
        return -ENOMEM;
    faults->target = *target;
    faults->machine = *machine;
    faults->proc_fd = faults->cgroup_fd = -1;
    r = get_ready(faults);
    if (r != 0) {
        end(faults);
        return r;
    }
    *ret_context = faults;
    return 0;
}

/*
 * Where blocks lie that were touched, and to which memory they belong
 *
 * A block is located by the page touched last. Untouched blocks are located only on request: with 128 GiB of them
 * it takes 16 ms. maps is read each time, numa_maps seldom, because the kernel walks all page tables for it.
 */

static int locate_some(HintFaults *faults, Touches *touches, size_t n)
{
    HintPlaces *places = &faults->places;

    for (size_t i = 0; i < n; i++)
        places->pages[i] = (void *)(uintptr_t)touches->blocks[places->asked[i]]
                               .address; /* NOLINT(performance-no-int-to-ptr) */
    if (n > 0 && syscall(SYS_move_pages, faults->memory_pid, n, places->pages, NULL, places->status, 0) < 0)
        return errno == ESRCH ? EVIDENCE_E_GONE : -errno;
    for (size_t i = 0; i < n; i++)
        touches->blocks[places->asked[i]].node =
            places->status[i] < 0 ? NODE_NONE
                                  : topology_node_by_os(faults->target.topology, (uint32_t)places->status[i]);
    return 0;
}

/* Whether a block was touched in this round, or was asked for. Blocks, samples and ranges ascend. */
static bool is_asked(const EvidenceFinds *finds, const TouchBlock *block, size_t *sample, size_t *range)
{
    const uint64_t number = block->address / TOUCHES_BLOCK_BYTES;
    const Touches *touches = &finds->touches;

    while (*sample < touches->n_samples && touches->samples[*sample].address / TOUCHES_BLOCK_BYTES < number)
        (*sample)++;
    while (*range < finds->n_asked && finds->asked[*range].end <= block->address)
        (*range)++;
    return (*sample < touches->n_samples &&
            touches->samples[*sample].address / TOUCHES_BLOCK_BYTES == number) ||
           (*range < finds->n_asked && finds->asked[*range].start <= block->address);
}

/* The node of a block that is not asked about is not known any more: the block may have been moved. */
static int locate(HintFaults *faults, EvidenceFinds *finds)
{
    Touches *touches = &finds->touches;
    size_t n = 0, sample = 0, range = 0;

    /* Emulated nodes have no memory of their own. */
    if (faults->target.topology->rehearsal > 0)
        return 0;
    for (size_t i = 0; i < touches->n_blocks; i++) {
        touches->blocks[i].node = NODE_NONE;
        if (!is_asked(finds, &touches->blocks[i], &sample, &range))
            continue;
        faults->places.asked[n++] = (uint32_t)i;
        if (n == PLACES_PER_CALL) {
            int r = locate_some(faults, touches, n);

            if (r != 0)
                return r;
            n = 0;
        }
    }
    return locate_some(faults, touches, n);
}

/* Regions that cannot be read are not known, and nothing in them is moved (I10). */
static int find_regions(HintFaults *faults, uint64_t now_usec, MemoryRegions *known)
{
    bool described = now_usec >= faults->places.describe_usec;
    uint64_t begin = time_now_usec();
    MemoryRegions regions = {0};
    int r = region_maps_read(faults->proc_fd, described, known, &regions);

    if (r == -ESRCH || r == -ENOENT)
        return EVIDENCE_E_GONE;
    if (r == -ENOMEM)
        return r;
    regions_done(known);
    *known = regions;
    if (described)
        faults->places.describe_usec =
            now_usec + MAX((time_now_usec() - begin) * DESCRIBE_SHARE, DESCRIBE_MIN_USEC);
    return 0;
}

/* Fills in the nodes of the blocks, and the regions; called after touches_gather() in a round with samples.
 * 0, EVIDENCE_E_GONE, or -errno. */
static int find_places(HintFaults *faults, uint64_t now_usec, EvidenceFinds *finds)
{
    int r = locate(faults, finds);

    return r == 0 ? find_regions(faults, now_usec, &finds->regions) : r;
}

/*
 * Counting
 */

typedef struct Taking {
    const HintFaults *faults;
    Touches *touches;
} Taking;

static int take(void *userdata, const FaultSample *sample)
{
    const Taking *taking = userdata;
    const TopologyCpu *cpu = NULL;
    Touch touch = {.address = sample->address, .tid = sample->tid, .cpu_node = NODE_NONE};

    /* Before pages are protected, the only faults are first touches. They show which thread set memory up, which
     * need not use it. */
    if (sample->pid != taking->faults->target.pid || !taking->faults->protected)
        return 0;
    if (sample->cpu <= INT32_MAX)
        cpu = topology_cpu(taking->faults->target.topology, (CpuIx){(int32_t)sample->cpu});
    if (cpu)
        touch.cpu_node = cpu->node;
    return touches_add(taking->touches, &touch);
}

/* Whether somebody else protects pages, too. Only blocks written in earlier rounds tell: a page that was
 * first read after it was protected never has the bit. */
static int watch(HintFaults *faults, const Touches *touches)
{
    uint64_t written[WATCHED];
    size_t n = 0;
    int r;

    if (faults->target.insist || !faults->protected)
        return 0;
    for (size_t i = 0; i < touches->n_blocks && n < WATCHED; i++)
        if (touches->blocks[i].last_round == touches->n_rounds && touches->blocks[i].n_rounds > 1)
            written[n++] = touches->blocks[i].address;
    r = hint_watch_meanwhile(faults->proc_fd, written, n);
    if (r < 0)
        return r == -ENOENT || r == -ESRCH ? EVIDENCE_E_GONE : r;
    faults->n_suspicious = r == 1 ? faults->n_suspicious + 1 : 0;
    return faults->n_suspicious >= SUSPICIOUS_MAX ? EVIDENCE_E_TRACKED : 0;
}

/* Rings of a control group see nothing of a process that has left it. */
static int follow(HintFaults *faults, size_t n_tids)
{
    if (hint_rings_scope(faults->rings) == HINT_RINGS_CGROUP) {
        CLEANUP_FREE char *cgroup = read_cgroup(faults);

        if (cgroup && strcmp(cgroup, faults->cgroup) != 0) {
            int r = make_rings(faults, TAKE_PTR(cgroup));

            if (r < 0)
                return r;
        }
    }
    return hint_rings_follow(faults->rings, faults->tids, n_tids);
}

/* All of a round up to protecting again. */
static int count(HintFaults *faults, const EvidenceNow *now, EvidenceFinds *finds, EvidenceRound *round)
{
    Touches *touches = &finds->touches;
    Taking taking = {faults, touches};
    HintRingsCount counted;
    uint64_t faults_made;
    size_t n_tids;
    int r = hint_rings_read(faults->rings, take, &taking, &counted);

    if (r < 0)
        return r;
    round->n_samples = counted.n_samples;
    round->n_lost = counted.n_lost;
    faults_made = (counted.n_samples + counted.n_lost) * counted.period;
    round->target_usec = faults_made * faults->machine.fault_nsec / NSEC_PER_USEC;

    r = evidence_follow_threads(faults->proc_fd, faults->target.pid, touches, &faults->tids,
                                &faults->tids_capacity, &n_tids);
    if (r != 0)
        return r;
    r = follow(faults, n_tids);
    if (r < 0 && hint_rings_n(faults->rings) == 0)
        return r;
    r = touches_gather(touches);
    if (r == 0 && touches->n_samples > 0)
        r = find_places(faults, now->now_usec, finds);
    if (r != 0)
        return r;
    round->counted = touches_fold(touches);
    return round->counted ? watch(faults, touches) : 0;
}

/*
 * Protecting
 */

/* Pages of its memory that are small ones; all of them when that cannot be read. */
static uint64_t small_pages(const HintFaults *faults)
{
    static const char *const huge[] = {"\nAnonHugePages:", "\nShmemPmdMapped:", "\nFilePmdMapped:"};
    CLEANUP_FREE char *text = malloc(8192);
    uint64_t pages = faults->rss_pages, page = (uint64_t)sysconf(_SC_PAGESIZE);

    if (!text || root_read(faults->proc_fd, "smaps_rollup", text, 8192) < 0)
        return pages;
    for (size_t i = 0; i < ARRAY_SIZE(huge); i++) {
        const char *line = strstr(text, huge[i]);
        uint64_t kib = line ? strtoull(line + strlen(huge[i]), NULL, 10) : 0;

        pages -= MIN(pages, MIN(kib, UINT64_MAX >> 10) * 1024 / page);
    }
    return pages;
}

/* A single long protection may be an accident: the thread that protects may have to wait for a CPU. */
static bool too_long(const HintFaults *faults)
{
    if (faults->protected)
        return faults->n_long >= LONG_MAX_IN_A_ROW;
    return small_pages(faults) * faults->machine.protect_nsec / NSEC_PER_USEC > faults->machine.stall_usec;
}

static void look_at_growth(HintFaults *faults, uint64_t now_usec)
{
    uint64_t growth = faults->rss_pages - MIN(faults->sized_pages, faults->rss_pages);

    if (now_usec < faults->sized_usec + GROWTH_USEC)
        return;
    faults->growing =
        faults->sized_usec == 0 || growth > MAX(GROWTH_PAGES, faults->sized_pages / GROWTH_SHARE);
    faults->sized_pages = faults->rss_pages;
    faults->sized_usec = now_usec;
}

static EvidenceHeld held(const HintFaults *faults, const EvidenceNow *now)
{
    if (now->moving)
        return EVIDENCE_HELD_MOVING;
    if (faults->growing)
        return EVIDENCE_HELD_GROWING;
    return now->now_usec < faults->rest_until_usec ? EVIDENCE_HELD_EARLY : EVIDENCE_HELD_NOT;
}

static int protect(HintFaults *faults, EvidenceRound *round)
{
    CLEANUP_CLOSE int fd = -1;
    uint64_t begin;

    if (too_long(faults))
        return EVIDENCE_E_TOO_LARGE;
    fd = openat(faults->proc_fd, "clear_refs", O_WRONLY | O_CLOEXEC);
    begin = time_now_usec();
    if (fd < 0 || write(fd, "4", 1) < 0)
        return errno == ENOENT || errno == ESRCH ? EVIDENCE_E_GONE : -errno;
    round->protect_usec = MAX(time_now_usec() - begin, 1U);
    faults->n_long = round->protect_usec > faults->machine.stall_usec ? faults->n_long + 1 : 0;
    faults->protected = true;
    return 0;
}

static int round_(void *context, const EvidenceNow *now, EvidenceFinds *finds, EvidenceRound *ret)
{
    HintFaults *faults = context;
    int r = evidence_look(&faults->target, faults->proc_fd, &faults->rss_pages);

    if (r == 0)
        r = count(faults, now, finds, ret);
    if (r != 0)
        return r;
    look_at_growth(faults, now->now_usec);
    ret->held = held(faults, now);
    if (ret->held == EVIDENCE_HELD_NOT) {
        r = protect(faults, ret);
        if (r != 0)
            return r;
    }
    ret->target_usec += ret->protect_usec;
    faults->rest_until_usec = MAX(faults->rest_until_usec,
                                  now->now_usec + hint_pace_rest_usec(ret->target_usec, now->cpu_permille));
    ret->rest_until_usec = faults->rest_until_usec;
    return 0;
}

const EvidenceOps evidence_write = {detect, begin, round_, end, .locates = true};
