/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Connected components, found by sorting. In a sorted list of (workload, memory, process), processes that map the same
 * memory are adjacent, and neighbours are joined (union-find). Then the parts choose their groups, the largest first.
 *
 * The kernel finds such groups when two tasks fault on the same page. Here a mapping that is no longer used still
 * counts. */

#include "plan/home/sharing.h"

#include "plan/buddies.h"
#include "plan/group.h"
#include "plan/pack/pack.h"
#include "world/load.h"

#include <string.h>

/* One mapping of one process, a word of Process.shared; or its cgroup, where that may be a group. Sharing
 * between different such cgroups does not count. */
typedef struct Share {
    int32_t workload;
    int32_t process;
    const char *cgroup; /* "": any */
    const char *word;
    size_t len; /* 0: the cgroup */
} Share;

/* What is known of a process while it is grouped; indices. */
typedef struct Member {
    int32_t leader; /* an earlier process of the same part, or itself; -1: not under such a policy */
    int32_t next;   /* the next member of its part; -1: none */
    int32_t group;  /* group of the part; only at its first member */
} Member;

typedef struct Part {
    int32_t first; /* its member with the lowest pid */
    uint32_t n;
} Part;

/* A group as one cgroup sees it. */
typedef struct Seat {
    size_t stamp;     /* number of the cgroup's first share, from 1; the rest refers to that cgroup */
    uint32_t n;       /* processes of the cgroup that are in the group */
    bool counted;     /* its demand is included in that of the cgroup */
    uint64_t n_fresh; /* threads that were not measured yet; in any cgroup */
} Seat;

/* The part of a node that a group may need at most when its separate processes are to come together. A choice
 * of ours. */
#define JOIN_PERMILLE 750U

typedef struct Sharing {
    World *world;
    const PolicySet *policies;
    Member *members;  /* [n_processes] */
    bool *claimed;    /* [n_groups], as many as there were */
    Seat *seats;      /* [n_groups] */
    bool any_cgroup;  /* some cgroup may be a group */
    uint64_t largest; /* then: permille of a CPU that a node has for a cgroup */
    Share *shares;
    size_t n_shares, shares_capacity;
    Part *parts;
    size_t n_parts, parts_capacity;
} Sharing;

static void sharing_done(Sharing *s)
{
    free(s->members);
    free(s->claimed);
    free(s->seats);
    free(s->shares);
    free(s->parts);
}

/* The policy of a process that is grouped by what it shares; NULL: the process is not. */
static const Policy *concerns(const Sharing *s, const Process *process)
{
    const Policy *policy = process->gone ? NULL : group_policy(s->world, s->policies, process->workload);

    return policy && policy_groups_sharers(policy) ? policy : NULL;
}

/* The next word that counts; NULL: none. Unless GroupBy=shared-memory, only memory counts that is much of all
 * the process has, or that the kernel has seen it use with others. */
static const char *next_share(const Policy *policy, const char *word, size_t *ret_len)
{
    const char between[] = {' ', PROCESS_SHARED_MUCH, '\0'};

    for (word += strspn(word, between); *word; word += strspn(word, between)) {
        size_t len = strcspn(word, " ");
        bool much = word[len - 1] == PROCESS_SHARED_MUCH;

        if (much || policy_group_by(policy) == POLICY_GROUP_BY_SHARED_MEMORY ||
            strncmp(word, "ngid:", strlen("ngid:")) == 0) {
            *ret_len = much ? len - 1 : len;
            return word;
        }
        word += len;
    }
    return NULL;
}

/* With GroupBy=auto or a cgroup in parts: whether others are in its group, but not because all of its cgroup are. */
bool sharing_moves(const World *world, const Policy *policy, const Process *process)
{
    bool parts = policy_parts_groups(policy), others = false, apart = !parts;

    if (policy_group_by(policy) != POLICY_GROUP_BY_AUTO && !parts)
        return policy_group_by(policy) == POLICY_GROUP_BY_SHARED_MEMORY;
    for (size_t i = 0; i < world->n_processes && !(others && apart); i++) {
        const Process *other = &world->processes[i];

        if (other == process || other->gone)
            continue;
        others |= other->group.i == process->group.i;
        apart |= other->group.i != process->group.i && other->workload.i == process->workload.i &&
                 other->cgroup == process->cgroup;
    }
    return others && apart;
}

static int compare_shares(const void *a, const void *b)
{
    const Share *x = a, *y = b;
    int r;

    if (x->workload != y->workload)
        return x->workload < y->workload ? -1 : 1;
    r = strcmp(x->cgroup, y->cgroup);
    if (r != 0)
        return r;
    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    r = memcmp(x->word, y->word, x->len);
    return r != 0 ? r : (x->process > y->process) - (x->process < y->process);
}

static bool same_memory(const Share *a, const Share *b)
{
    return a->workload == b->workload && a->len == b->len && memcmp(a->word, b->word, a->len) == 0 &&
           strcmp(a->cgroup, b->cgroup) == 0;
}

/* Union-find with path halving. */
static int32_t find_first(const Sharing *s, int32_t process)
{
    Member *members = s->members;

    while (members[process].leader != process) {
        members[process].leader = members[members[process].leader].leader;
        process = members[process].leader;
    }
    return process;
}

static void join(const Sharing *s, int32_t a, int32_t b)
{
    a = find_first(s, a);
    b = find_first(s, b);
    s->members[MAX(a, b)].leader = MIN(a, b);
}

/* The cgroup that is a group if it fits on a node; "": none. */
static const char *cgroup_of(const Policy *policy, const Process *process)
{
    return process->cgroup && policy_parts_groups(policy) ? process->cgroup : "";
}

static int add_share(Sharing *s, size_t index, const char *cgroup, const char *word, size_t len)
{
    return APPEND(s->shares, s->shares_capacity, s->n_shares,
                  (Share){s->world->processes[index].workload.i, (int32_t)index, cgroup, word, len});
}

static int list_shares(Sharing *s)
{
    const Process *last = NULL;

    for (size_t i = 0; i < s->world->n_processes; i++) {
        const Process *process = &s->world->processes[i];
        const Policy *policy = concerns(s, process);
        const char *word, *cgroup;
        size_t len;
        int r;

        s->members[i] = (Member){-1, -1, -1};
        if (!policy)
            continue;
        s->members[i].leader = (int32_t)i;
        cgroup = cgroup_of(policy, process);
        s->any_cgroup |= *cgroup != '\0';
        r = *cgroup ? add_share(s, i, cgroup, "", 0) : 0;
        if (r < 0)
            return r;
        word = process->shared ? next_share(policy, process->shared, &len) : NULL;
        if (!word)
            continue;
        /* A thousand workers forked by one parent mostly map what the previous one does, and the text is interned. */
        if (last && last->shared == process->shared && last->workload.i == process->workload.i &&
            strcmp(cgroup_of(policy, last), cgroup) == 0) {
            s->members[i].leader = (int32_t)(last - s->world->processes);
            continue;
        }
        last = process;
        for (; word; word = next_share(policy, word + len, &len)) {
            r = add_share(s, i, cgroup, word, len);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* The most numerous first. */
static int compare_parts(const void *a, const void *b)
{
    const Part *x = a, *y = b;

    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

/* Cgroups */

/* A thread that was not measured yet counts as wanting a CPU, like the full load of a new task in the kernel. */
static uint64_t demand_of(const Sharing *s, int32_t group)
{
    const Group *g = &s->world->groups[group];

    return MAX(g->demand_permille, g->want_permille) + s->seats[group].n_fresh * LOAD_FULL_PERMILLE;
}

static void count_fresh(const Sharing *s)
{
    for (size_t i = 0; i < s->world->n_tasks; i++) {
        const Task *task = &s->world->tasks[i];
        GroupIx group = s->world->processes[task->process.i].group;

        if (group.i >= 0 && task->fresh && !task->gone)
            s->seats[group.i].n_fresh++;
    }
}

/* The cores of the largest node. Where only one node has CPUs: more than any cgroup wants. */
static int measure_largest(Sharing *s)
{
    const World *world = s->world;
    hwloc_bitmap_t nodes = hwloc_bitmap_alloc();
    uint32_t n = 0;
    int r = nodes ? hwloc_bitmap_set_range(nodes, 0, (int)world->topology->n_nodes - 1) : -1;

    for (uint32_t i = 0; i < world->topology->n_nodes; i++)
        n += world->topology->nodes[i].n_cpus > 0;
    s->largest = r < 0 ? 0 : n < 2 ? PACK_DEMAND_MAX * 2ULL : buddies_largest(world, nodes, 0);
    hwloc_bitmap_free(nodes);
    return r < 0 ? -ENOMEM : 0;
}

/* The group that has most processes of a cgroup, and so what is together now. The shares of the cgroup begin
 * at number `first`. -1: the processes have no group. */
static int32_t main_group(const Sharing *s, size_t first, size_t n)
{
    int32_t most = -1;

    for (size_t i = first; i < first + n; i++) {
        int32_t group = s->world->processes[s->shares[i].process].group.i;

        if (group < 0)
            continue;
        if (s->seats[group].stamp != first + 1)
            s->seats[group] = (Seat){.stamp = first + 1, .n_fresh = s->seats[group].n_fresh};
        s->seats[group].n++;
        if (most < 0 || s->seats[group].n > s->seats[most].n ||
            (s->seats[group].n == s->seats[most].n && group < most))
            most = group;
    }
    return most;
}

/* Not if it was separated from the others a short time ago: then its group is younger than the process. */
static bool may_come(const Sharing *s, const Process *process)
{
    const Group *group = &s->world->groups[process->group.i];
    const Policy *policy = group_policy(s->world, s->policies, process->workload);

    return group->first_seen_usec - MIN(process->first_seen_usec, group->first_seen_usec) < LOAD_YOUNG_USEC ||
           world_since(s->world, group->first_seen_usec) >= policy->ping_pong_usec;
}

/* Joins the processes of a cgroup that are together now, as long as they fit on one node. Also joins all
 * others that may come to them, if there is room to spare for all. */
static void join_cgroup(const Sharing *s, size_t first, size_t n)
{
    const World *world = s->world;
    int32_t here = main_group(s, first, n), last = -1;
    uint64_t all;

    if (here < 0 || demand_of(s, here) > pack_limit(MIN(s->largest, PACK_DEMAND_MAX)))
        return;
    all = demand_of(s, here);
    s->seats[here].counted = true;
    for (size_t i = first; i < first + n; i++) {
        const Process *process = &world->processes[s->shares[i].process];

        if (process->group.i < 0 || s->seats[process->group.i].counted || !may_come(s, process))
            continue;
        s->seats[process->group.i].counted = true;
        all += demand_of(s, process->group.i);
    }
    for (size_t i = first; i < first + n; i++) {
        int32_t process = s->shares[i].process, group = world->processes[process].group.i;

        if (group != here &&
            (group < 0 || !s->seats[group].counted || all > s->largest * JOIN_PERMILLE / 1000))
            continue;
        if (last >= 0)
            join(s, last, process);
        last = process;
    }
}

static void join_sharers(Sharing *s)
{
    if (s->n_shares > 0)
        qsort(s->shares, s->n_shares, sizeof(*s->shares), compare_shares);
    for (size_t i = 0, n; i < s->n_shares; i += n) {
        for (n = 1; i + n < s->n_shares && same_memory(&s->shares[i], &s->shares[i + n]);)
            n++;
        if (s->shares[i].len == 0 && rule_holds(s->world, ABLATION_PARTS)) {
            join_cgroup(s, i, n);
            continue;
        }
        for (size_t k = 1; k < n; k++)
            join(s, s->shares[i].process, s->shares[i + k].process);
    }

    /* From the last process on, so that the members of a part follow its first in order. */
    for (size_t i = s->world->n_processes; i > 0; i--) {
        Member *member = &s->members[i - 1];
        int32_t first = member->leader < 0 ? -1 : find_first(s, (int32_t)i - 1);

        if (first < 0 || first == (int32_t)i - 1)
            continue;
        member->next = s->members[first].next;
        s->members[first].next = (int32_t)i - 1;
    }
}

static int list_parts(Sharing *s)
{
    for (size_t i = 0; i < s->world->n_processes; i++) {
        Part part = {.first = (int32_t)i};

        if (s->members[i].leader != (int32_t)i)
            continue;
        for (int32_t m = part.first; m >= 0; m = s->members[m].next)
            part.n++;
        if (APPEND(s->parts, s->parts_capacity, s->n_parts, part) < 0)
            return -ENOMEM;
    }
    if (s->n_parts > 0)
        qsort(s->parts, s->n_parts, sizeof(*s->parts), compare_parts);
    return 0;
}

/* The oldest group of a member that no larger part has claimed; GROUP_NONE: none. Groups are sorted by age. */
static GroupIx oldest_group(const Sharing *s, const Part *part)
{
    const World *world = s->world;
    GroupIx oldest = GROUP_NONE;

    for (int32_t m = part->first; m >= 0; m = s->members[m].next) {
        const Process *process = &world->processes[m];
        GroupIx group = process->group;

        if (group.i < 0 || s->claimed[group.i] || world->groups[group.i].gone ||
            world->groups[group.i].workload.i != process->workload.i)
            continue;
        if (oldest.i < 0 || group.i < oldest.i)
            oldest = group;
    }
    return oldest;
}

static int choose_group(Sharing *s, const Part *part)
{
    const Process *first = &s->world->processes[part->first];
    int group = oldest_group(s, part).i;
    char buf[GROUP_KEY_SIZE];

    if (group >= 0) {
        s->claimed[group] = true;
    } else {
        group = world_add_group(s->world, first->workload,
                                group_key(group_policy(s->world, s->policies, first->workload), first, buf));
        if (group < 0)
            return group;
    }
    s->members[part->first].group = group;
    return 0;
}

static int group_all(Sharing *s)
{
    int r = list_shares(s);

    if (r < 0)
        return r;
    if (s->any_cgroup && measure_largest(s) < 0)
        return -ENOMEM;
    if (s->any_cgroup)
        count_fresh(s);
    join_sharers(s);
    r = list_parts(s);
    for (size_t i = 0; r == 0 && i < s->n_parts; i++)
        r = choose_group(s, &s->parts[i]);
    if (r < 0)
        return r;

    for (size_t i = 0; i < s->world->n_processes; i++)
        if (s->members[i].leader >= 0)
            s->world->processes[i].group.i = s->members[find_first(s, (int32_t)i)].group;
    if (s->n_parts > 0)
        world_sum(s->world);
    return 0;
}

static int group_sharers(World *world, const PolicySet *policies)
{
    CLEANUP(sharing_done)
    Sharing s = {
        .world = world,
        .policies = policies,
        .members = calloc(MAX(world->n_processes, (size_t)1), sizeof(*s.members)),
        .claimed = calloc(MAX(world->n_groups, (size_t)1), sizeof(*s.claimed)),
        .seats = calloc(MAX(world->n_groups, (size_t)1), sizeof(*s.seats)),
    };

    if (!s.members || !s.claimed || !s.seats)
        return -ENOMEM;
    return group_all(&s);
}

int sharing_group(World *world, const PolicySet *policies)
{
    for (size_t i = 0; i < policies->n_policies; i++)
        if (policy_groups_sharers(policies->policies[i]))
            return group_sharers(world, policies);
    return 0;
}
