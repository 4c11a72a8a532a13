/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One lock protects everything but the rounds. A RUNNING entry belongs to the thread that makes its round,
 * any other to the holder of the lock:
 *
 *     IDLE -- due --> RUNNING -- round made --> IDLE
 *       |                |`---- failed or gone --> OVER
 *       `--- dropped ----+------------------------> the entry goes
 *
 * A thread of the crew frees a dropped entry when it is not running, because closing rings takes time. */

#include "probe/memory/evidence-crew.h"

#include "base/thread.h"
#include "base/time.h"

#include <fcntl.h>
#include <sys/eventfd.h>

/* Processes remembered as examined; the oldest are forgotten first. */
#define MARKS_MAX 1024U

/* HELD_USEC is the longest time between two rounds that are held back: it takes two to see that a process no
 * longer grows. HELD_MOVING_USEC is the shortest time between two rounds while its memory moves, when their
 * findings are useless; when the moves end, a round is due at once. Both are choices of ours. */
#define HELD_USEC        50000U
#define HELD_MOVING_USEC 300000U

/* How long the end waits for a round under way. */
#define END_USEC 500000U

typedef enum EntryState {
    ENTRY_IDLE,
    ENTRY_RUNNING,
    ENTRY_OVER,
} EntryState;

typedef struct Entry {
    EvidenceTarget target;
    TaskKey parent; /* its parent, if that was examined and lives; pid 0: it was not */
    EvidenceKind kind;
    uid_t uid;
    EvidenceNow now;
    EvidenceReport report;
    EvidenceSession *session;
    uint64_t made_usec; /* when the last round began */
    uint64_t due_usec;
    EntryState state;
    bool moved; /* its pages were moved, and no round was made since */
    bool dropped;
} Entry;

struct EvidenceCrew {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    EvidenceMachine machine;
    int root_fd, news_fd;
    Topology *topology;
    Entry *entries[EVIDENCE_CREW_MAX]; /* in no order */
    size_t n_entries;
    pthread_t threads[EVIDENCE_CREW_THREADS];
    size_t n_threads, n_running;
    TaskKey marks[MARKS_MAX]; /* tid 0 */
    size_t n_marks;
    uint64_t cost_usec;
    bool ending;
};

/* Whether this user has as many rounds under way as it may. */
static bool is_user_busy(const EvidenceCrew *crew, uid_t uid)
{
    size_t n = 0;

    for (size_t i = 0; i < crew->n_entries; i++)
        n += crew->entries[i]->state == ENTRY_RUNNING && crew->entries[i]->uid == uid;
    return n >= EVIDENCE_CREW_USER_MAX;
}

/* The next entry: dropped ones first, then the one due for longest, in a tie the lowest pid. If NULL,
 * *ret_until_usec says until when there is nothing to do. */
static Entry *find_due(const EvidenceCrew *crew, uint64_t now_usec, uint64_t *ret_until_usec)
{
    uint64_t until = UINT64_MAX;
    Entry *best = NULL;

    for (size_t i = 0; i < crew->n_entries; i++) {
        Entry *entry = crew->entries[i];

        if (entry->state == ENTRY_RUNNING)
            continue;
        if (entry->dropped)
            return entry;
        if (entry->state == ENTRY_OVER || is_user_busy(crew, entry->uid))
            continue;
        until = MIN(until, entry->due_usec);
        if (entry->due_usec <= now_usec &&
            (!best || entry->due_usec < best->due_usec ||
             (entry->due_usec == best->due_usec && entry->target.pid < best->target.pid)))
            best = entry;
    }
    *ret_until_usec = until;
    return best;
}

/* Whether the parent is still the process that was examined, and not another one with its number. */
static bool is_parent_same(const Entry *entry)
{
    const EvidenceTarget parent = {
        .root_fd = entry->target.root_fd,
        .pid = entry->parent.pid,
        .start_ticks = entry->parent.start_ticks,
    };
    CLEANUP_CLOSE int fd = parent.pid > 0 ? evidence_open_process(&parent, NULL) : -1;

    return fd >= 0;
}

/* Called without the lock. */
static int make_round(const EvidenceCrew *crew, Entry *entry, const EvidenceNow *now, EvidenceRound *round)
{
    if (!entry->session) {
        int r;

        entry->target.marked = entry->target.marked || is_parent_same(entry);
        r = evidence_begin(&crew->machine, entry->kind, &entry->target, &entry->session);

        if (r != 0)
            return r;
    }
    return evidence_round(entry->session, now, round);
}

/* The period may have changed since the last round. A round that was held back made no samples, so a long
 * wait would gain nothing. */
static void set_due(Entry *entry)
{
    const EvidenceRound *last = &entry->report.last;
    uint64_t period = entry->now.period_usec;

    if (entry->report.n_rounds == 0)
        return;
    if (last->held != EVIDENCE_HELD_NOT)
        period = MIN(period, HELD_USEC);
    if (entry->now.moving)
        period = MAX(period, HELD_MOVING_USEC);
    if (entry->moved)
        period = 0;
    entry->due_usec = MAX(entry->made_usec + period, last->rest_until_usec);
}

static void take_in(EvidenceCrew *crew, Entry *entry, const EvidenceRound *round, uint64_t made_usec)
{
    EvidenceReport *report = &entry->report;

    report->last = *round;
    report->n_rounds++;
    report->n_samples += round->n_samples;
    report->n_lost += round->n_lost;
    report->cost_usec += round->cost_usec;
    report->target_usec += round->target_usec;
    report->protect_max_usec = MAX(report->protect_max_usec, round->protect_usec);
    crew->cost_usec += round->cost_usec;
    entry->made_usec = made_usec;
    set_due(entry);
}

static void remove_entry(EvidenceCrew *crew, const Entry *entry)
{
    for (size_t i = 0; i < crew->n_entries; i++)
        if (crew->entries[i] == entry) {
            crew->entries[i] = crew->entries[--crew->n_entries];
            return;
        }
}

/* Called with the lock, which is released meanwhile. */
static void work_on(EvidenceCrew *crew, Entry *entry)
{
    EvidenceSession *ended = NULL;
    EvidenceRound round = {0};
    EvidenceNow now = entry->now;
    int r;

    if (entry->dropped) {
        remove_entry(crew, entry);
        (void)pthread_mutex_unlock(&crew->lock);
        (void)evidence_end(entry->session);
        free(entry);
        (void)pthread_mutex_lock(&crew->lock);
        return;
    }
    entry->state = ENTRY_RUNNING;
    entry->moved = false;
    crew->n_running++;
    (void)pthread_mutex_unlock(&crew->lock);
    now.now_usec = time_now_usec();
    r = make_round(crew, entry, &now, &round);
    if (r != 0)
        ended = TAKE_PTR(entry->session);
    (void)evidence_end(ended);
    (void)pthread_mutex_lock(&crew->lock);
    crew->n_running--;
    /* Another process of its user may be next. */
    (void)pthread_cond_broadcast(&crew->changed);
    entry->report.outcome = r;
    entry->state = r == 0 ? ENTRY_IDLE : ENTRY_OVER;
    if (r == 0)
        take_in(crew, entry, &round, now.now_usec);
    if (r != 0 || round.counted)
        (void)eventfd_write(crew->news_fd, 1);
}

static void await(EvidenceCrew *crew, uint64_t until_usec)
{
    if (until_usec == UINT64_MAX)
        (void)pthread_cond_wait(&crew->changed, &crew->lock);
    else
        (void)thread_cond_wait_until(&crew->changed, &crew->lock, until_usec);
}

static void *run(void *userdata)
{
    EvidenceCrew *crew = userdata;

    (void)pthread_mutex_lock(&crew->lock);
    while (!crew->ending) {
        uint64_t until;
        Entry *entry = find_due(crew, time_now_usec(), &until);

        if (entry)
            work_on(crew, entry);
        else
            await(crew, until);
    }
    (void)pthread_mutex_unlock(&crew->lock);
    return NULL;
}

int evidence_crew_new(const EvidenceMachine *machine, int root_fd, Topology *topology, EvidenceCrew **ret)
{
    EvidenceCrew *crew = calloc(1, sizeof(*crew));

    if (!crew)
        return -ENOMEM;
    crew->root_fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
    crew->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (crew->root_fd < 0 || crew->news_fd < 0) {
        int r = -errno;

        close_p(&crew->root_fd);
        close_p(&crew->news_fd);
        free(crew);
        return r;
    }
    crew->machine = *machine;
    crew->topology = topology_ref(topology);
    (void)pthread_mutex_init(&crew->lock, NULL);
    thread_cond_init(&crew->changed);
    *ret = crew;
    return 0;
}

/* Returns whether all threads have ended. Waits for rounds under way, but not for ever. */
static bool end_threads(EvidenceCrew *crew)
{
    uint64_t until = time_now_usec() + END_USEC;
    bool all;

    (void)pthread_mutex_lock(&crew->lock);
    crew->ending = true;
    (void)pthread_cond_broadcast(&crew->changed);
    while (crew->n_running > 0 && time_now_usec() < until)
        await(crew, until);
    all = crew->n_running == 0;
    (void)pthread_mutex_unlock(&crew->lock);
    for (size_t i = 0; i < crew->n_threads; i++)
        if (all)
            (void)pthread_join(crew->threads[i], NULL);
        else
            (void)pthread_detach(crew->threads[i]);
    return all;
}

EvidenceCrew *evidence_crew_free(EvidenceCrew *crew)
{
    if (crew && end_threads(crew)) {
        for (size_t i = 0; i < crew->n_entries; i++) {
            (void)evidence_end(crew->entries[i]->session);
            free(crew->entries[i]);
        }
        (void)pthread_cond_destroy(&crew->changed);
        (void)pthread_mutex_destroy(&crew->lock);
        (void)topology_unref(crew->topology);
        (void)close(crew->root_fd);
        (void)close(crew->news_fd);
        free(crew);
    }
    return NULL;
}

static int start_thread(EvidenceCrew *crew)
{
    int r;

    if (crew->n_threads == EVIDENCE_CREW_THREADS)
        return 0;
    r = thread_start(&crew->threads[crew->n_threads], run, crew);
    if (r < 0)
        return crew->n_threads > 0 ? 0 : r;
    (void)pthread_setname_np(crew->threads[crew->n_threads], "looker");
    crew->n_threads++;
    return 0;
}

static Entry *find(const EvidenceCrew *crew, pid_t pid)
{
    for (size_t i = 0; i < crew->n_entries; i++)
        if (crew->entries[i]->target.pid == pid && !crew->entries[i]->dropped)
            return crew->entries[i];
    return NULL;
}

/* The latest process with this number that was examined, of those that start_ticks_max allows; pid 0: none. */
static TaskKey find_mark(const EvidenceCrew *crew, pid_t pid, uint64_t start_ticks_max)
{
    TaskKey latest = {0};

    for (size_t i = 0; i < MIN(crew->n_marks, MARKS_MAX); i++) {
        const TaskKey *mark = &crew->marks[i];

        if (mark->pid == pid && mark->start_ticks <= start_ticks_max &&
            mark->start_ticks >= latest.start_ticks)
            latest = *mark;
    }
    return latest;
}

static int add_locked(EvidenceCrew *crew, const EvidenceSubject *subject)
{
    const TaskKey mark = find_mark(crew, subject->pid, subject->start_ticks);
    bool marked = mark.pid > 0 && mark.start_ticks == subject->start_ticks;
    Entry *entry;
    int r;

    if (find(crew, subject->pid))
        return -EEXIST;
    if (crew->n_entries == EVIDENCE_CREW_MAX)
        return -E2BIG;
    /* At most as many threads as processes. */
    r = crew->n_threads <= crew->n_entries ? start_thread(crew) : 0;
    if (r < 0)
        return r;
    entry = calloc(1, sizeof(*entry));
    if (!entry)
        return -ENOMEM;
    *entry = (Entry){
        .target = {.root_fd = crew->root_fd,
                   .topology = crew->topology,
                   .pid = subject->pid,
                   .start_ticks = subject->start_ticks,
                   .insist = subject->insist,
                   .marked = marked},
        .parent = find_mark(crew, subject->parent, subject->start_ticks),
        .kind = subject->kind,
        .uid = subject->uid,
        .report = {.kind = subject->kind},
    };
    if (subject->kind == EVIDENCE_WRITE && !marked)
        crew->marks[crew->n_marks++ % MARKS_MAX] =
            (TaskKey){.pid = subject->pid, .start_ticks = subject->start_ticks};
    crew->entries[crew->n_entries++] = entry;
    return 0;
}

int evidence_crew_add(EvidenceCrew *crew, const EvidenceSubject *subject)
{
    int r;

    (void)pthread_mutex_lock(&crew->lock);
    r = add_locked(crew, subject);
    (void)pthread_cond_signal(&crew->changed);
    (void)pthread_mutex_unlock(&crew->lock);
    return r;
}

int evidence_crew_drop(EvidenceCrew *crew, pid_t pid)
{
    Entry *entry;

    (void)pthread_mutex_lock(&crew->lock);
    entry = find(crew, pid);
    if (entry)
        entry->dropped = true;
    (void)pthread_cond_signal(&crew->changed);
    (void)pthread_mutex_unlock(&crew->lock);
    return entry ? 0 : -ENOENT;
}

int evidence_crew_tell(EvidenceCrew *crew, pid_t pid, const EvidenceNow *now)
{
    Entry *entry;
    int r = -ENOENT;

    (void)pthread_mutex_lock(&crew->lock);
    entry = find(crew, pid);
    if (entry) {
        uint64_t due = entry->due_usec;

        entry->moved |= entry->now.moving && !now->moving;
        entry->now = *now;
        r = entry->state == ENTRY_RUNNING;
        set_due(entry);
        if (entry->due_usec < due)
            (void)pthread_cond_signal(&crew->changed);
    }
    (void)pthread_mutex_unlock(&crew->lock);
    return r;
}

int evidence_crew_look(EvidenceCrew *crew, pid_t pid,
                       int (*look)(void *userdata, const EvidenceReport *report, EvidenceSession *session),
                       void *userdata)
{
    Entry *entry;
    int r = -ENOENT;

    (void)pthread_mutex_lock(&crew->lock);
    entry = find(crew, pid);
    if (entry)
        r = entry->state == ENTRY_RUNNING ? -EAGAIN : look(userdata, &entry->report, entry->session);
    (void)pthread_mutex_unlock(&crew->lock);
    return r;
}

int evidence_crew_fd(const EvidenceCrew *crew)
{
    return crew->news_fd;
}

void evidence_crew_clear(EvidenceCrew *crew)
{
    eventfd_t n;

    (void)eventfd_read(crew->news_fd, &n);
}

uint64_t evidence_crew_cost_usec(EvidenceCrew *crew)
{
    uint64_t usec;

    (void)pthread_mutex_lock(&crew->lock);
    usec = crew->cost_usec;
    (void)pthread_mutex_unlock(&crew->lock);
    return usec;
}
