/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A cgroup can be fenced when everything in it is at home in one group: then that home is the cgroup's, too.
 * All of it must be free to be placed, because a cpuset also moves threads whose masks must be left alone. */

#include "act/fence/internal.h"
#include "base/time.h"

FenceGroup *fence_group(Fences *fences, uint64_t id)
{
    size_t at = LOWER_BOUND(i, fences->n_groups, fences->groups[i].id < id);

    return at < fences->n_groups && fences->groups[at].id == id ? &fences->groups[at] : NULL;
}

ActMeans fences_means(const Fences *fences, uint64_t group_id)
{
    const FenceGroup *entry = fences ? fence_group((Fences *)fences, group_id) : NULL;

    return entry ? entry->means : (ActMeans){.why = fences ? ACT_WHY_NO_HOME : ACT_WHY_OBSERVE};
}

/* The World's groups, also by ascending ID; nothing is known of their fences yet. */
static int begin_groups(Fences *fences, const World *world)
{
    fences->n_groups = 0;
    if (!GROW(fences->groups, fences->groups_capacity, world->n_groups + 1))
        return -ENOMEM;
    for (size_t i = 0; i < world->n_groups; i++)
        fences->groups[fences->n_groups++] = (FenceGroup){
            .id = world->groups[i].id,
            .means = {.why = ACT_WHY_NO_HOME},
        };
    return 0;
}

static void say(Fences *fences, uint64_t group_id, ActFenceKind kind, ActWhy why, int error)
{
    FenceGroup *entry = fence_group(fences, group_id);

    if (entry)
        entry->means = (ActMeans){.kind = kind, .why = why, .error = error};
}

/* What the cgroup of a process keeps: what its threads are due. */
static int find_target(const World *world, const Process *process, hwloc_bitmap_t ret)
{
    if (hwloc_bitmap_and(ret, world->groups[process->group.i].home, process->cpuset) < 0)
        return -ENOMEM;
    for (int cpu = hwloc_bitmap_first(ret); cpu >= 0; cpu = hwloc_bitmap_next(ret, cpu))
        if ((uint32_t)cpu >= world->topology->cpu_limit || !world->cpus[cpu].usable)
            if (hwloc_bitmap_clr(ret, (unsigned)cpu) < 0)
                return -ENOMEM;
    return 0;
}

/* Whether all threads of a process are where the fence would keep them. */
static ActWhy look_at_tasks(const World *world, const Process *process, hwloc_const_bitmap_t target)
{
    size_t n, first = world_process_tasks(world, process, &n);
    ActWhy why = ACT_WHY_UP;

    if (process->yielded)
        return ACT_WHY_HANDS;
    for (size_t i = first; i < first + n; i++) {
        const Task *task = &world->tasks[i];

        if (task->gone)
            continue;
        if (task->hands != TASK_HANDS_FREE)
            return ACT_WHY_HANDS;
        if (!task->allowed || !hwloc_bitmap_isincluded(task->allowed, target))
            why = ACT_WHY_SETTLING;
    }
    return why;
}

/* Adds a process to the fence of its cgroup. 0 or -ENOMEM. */
static int join(Fences *fences, const World *world, const Process *process, const FencePlace *place,
                bool memory)
{
    const Group *group = &world->groups[process->group.i];
    Fence *fence = fence_find(fences, place->name, false);
    ActWhy why;
    int r = 0;

    if (!fence)
        r = fence_add(fences, place->kind, place->name, place->path, false, &fence);
    if (r < 0) {
        say(fences, group->id, place->kind, ACT_WHY_REFUSED, r);
        return r == -ENOMEM ? r : 0;
    }
    if (find_target(world, process, fences->scratch) < 0 ||
        !GROW(fence->members, fence->members_capacity, fence->n_members + 1))
        return -ENOMEM;

    why = look_at_tasks(world, process, fences->scratch);
    if (fence->n_members == 0) {
        fence->group_id = group->id;
        fence->why = ACT_WHY_UP;
        if (fence->state == FENCE_DOWN && hwloc_bitmap_copy(fence->target, fences->scratch) < 0)
            return -ENOMEM;
    } else if (fence->group_id != group->id) {
        why = ACT_WHY_SHARED;
        say(fences, group->id, place->kind, why, 0);
    }
    /* The home has moved on, or cgroups below have cpusets of their own. */
    if (why == ACT_WHY_UP && !hwloc_bitmap_isequal(fence->target, fences->scratch))
        why = ACT_WHY_SETTLING;
    if (group->n_leases > 0)
        why = ACT_WHY_BORROWS;
    if (hwloc_bitmap_isequal(fence->target, process->cpuset) || hwloc_bitmap_iszero(fence->target))
        why = ACT_WHY_WIDE;
    if (why != ACT_WHY_UP)
        fence->why = why;
    r = fence_memory_join(fence, world, process, memory);
    fence->members[fence->n_members++] = process->pid; /* processes ascend */
    return r;
}

static int look_at_process(Fences *fences, const World *world, const Process *process, ActWants wants,
                           void *userdata)
{
    FencePlace place;
    const Group *group;
    bool memory = false;
    ActWish wish;
    ActWhy why;

    if (process->gone || process->group.i < 0 || !process->cpuset)
        return 0;
    group = &world->groups[process->group.i];
    if (group->gone || !group->home)
        return 0;
    if (world->workloads[group->workload.i].paused) {
        say(fences, group->id, ACT_FENCE_NONE, ACT_WHY_PAUSED, 0);
        return 0;
    }
    wish = wants(userdata, world, group->workload, &memory);
    why = fence_place(fences->root_fd, &fences->host, process, wish, &place);
    if (why == ACT_WHY_UP)
        return join(fences, world, process, &place, memory);
    say(fences, group->id, place.kind, why, 0);
    return 0;
}

static bool is_member(void *userdata, pid_t pid)
{
    return fence_has_member(userdata, pid);
}

/* Why a fence must stay down although the World allows it. */
static ActWhy look_at_cgroup(Fences *fences, Fence *fence)
{
    int r;

    if (fence->n_foreign >= FENCE_FOREIGN_MAX)
        return ACT_WHY_FOREIGN;
    if (fence->moved)
        return ACT_WHY_CHANGING;
    if (time_now_usec() < fence->rest_usec)
        return fence->error < 0 ? ACT_WHY_REFUSED : fence->n_foreign > 0 ? ACT_WHY_FOREIGN : ACT_WHY_BORROWS;
    r = fence_all(fences->root_fd, fence->kind, fence->path, is_member, fence);
    if (r > 0 && fence_is_taken_below(fences, fence))
        return ACT_WHY_SHARED;
    return r > 0 ? ACT_WHY_UP : r == 0 ? ACT_WHY_SHARED : ACT_WHY_SETTLING;
}

static void move(Fences *fences, Fence *fence)
{
    ActWhy why = fence->why;

    if (fence->state == FENCE_DOWN) {
        if (why == ACT_WHY_UP)
            why = look_at_cgroup(fences, fence);
        if (why == ACT_WHY_UP && fence_read_before(fences, fence) == 0)
            fence_raise(fences, fence);
    } else if (why != ACT_WHY_UP) {
        fence_lower(fences, fence);
    }
    if (why == ACT_WHY_UP && fence->state != FENCE_UP)
        why = fence->state == FENCE_DOWN && fence->error < 0 ? ACT_WHY_REFUSED : ACT_WHY_CHANGING;
    say(fences, fence->group_id, fence->kind, why, -fence->error);
}

int fences_follow(Fences *fences, const World *world, ActWants wants, void *userdata)
{
    int r = fences ? begin_groups(fences, world) : 0;

    if (!fences)
        return 0;
    for (size_t i = 0; i < fences->n_fences; i++)
        fences->fences[i]->n_members = 0;
    for (size_t i = 0; r == 0 && i < world->n_processes; i++)
        r = look_at_process(fences, world, &world->processes[i], wants, userdata);

    for (size_t i = fences->n_fences; r == 0 && i-- > 0;) {
        Fence *fence = fences->fences[i];

        if (fence->memory)
            continue;
        if (fence->n_members > 0) {
            move(fences, fence);
            continue;
        }
        /* No process of the World is in it. */
        if (fence->state != FENCE_DOWN)
            fence_lower(fences, fence);
        if (fence->state == FENCE_DOWN && !fence->noted)
            fence_remove(fences, fence);
    }
    return r == 0 ? fence_memory_follow(fences) : r;
}

const char *act_fence_name(ActFenceKind kind)
{
    static const char *const names[] = {"affinity", "unit", "cgroup2", "cgroup1", "cpusetfs"};

    static_assert(ARRAY_SIZE(names) == ACT_FENCE_MAX, "one name per kind");
    assert(kind >= 0 && kind < ACT_FENCE_MAX);
    return names[kind];
}

typedef struct Why {
    const char *name, *text;
} Why;

static const Why *why_of(ActWhy why)
{
    static const Why whys[] = {
        [ACT_WHY_UP] = {"up", "The cpuset of its cgroup is its home."},
        [ACT_WHY_OBSERVE] = {"observe", "The daemon changes nothing: by --dry-run, or for want of rights."},
        [ACT_WHY_POLICY] = {"policy", "The policy places it by masks alone (Act=affinity)."},
        [ACT_WHY_NO_HOME] = {"no-home", "It has no home to confine it to."},
        [ACT_WHY_PAUSED] = {"paused", "Its workload is paused: it keeps its home by masks alone."},
        [ACT_WHY_HOST] =
            {"host",
             "This host cannot confine cgroups: no cpuset controller, one at /dev/cpuset without libcpuset, "
             "or no systemd with cgroup v2."},
        [ACT_WHY_NO_UNIT] = {"no-unit", "It is not in a systemd unit."},
        [ACT_WHY_NESTED] = {"nested", "Its unit belongs to the service manager of a user or a container."},
        [ACT_WHY_CONTAINER] = {"container",
                               "It is in a container, and the policy does not name Act=unit or Act=cpuset."},
        [ACT_WHY_ROOT] = {"root", "It is in the root cgroup, which has no CPUs of its own."},
        [ACT_WHY_MANAGED] = {"managed", "Its cgroup belongs to systemd and is not delegated."},
        [ACT_WHY_FORGETS] = {"forgets",
                             "Before Linux 6.2, threads forget their masks when a cpuset changes, and the "
                             "policy does not name Act=unit or Act=cpuset."},
        [ACT_WHY_SHARED] =
            {"shared",
             "Its cgroup also holds other processes, or a cgroup below it already has exactly the home's "
             "CPUs."},
        [ACT_WHY_HANDS] = {"hands", "A thread in its cgroup must be left alone."},
        [ACT_WHY_SETTLING] = {"settling", "Not all of its threads are at home yet."},
        [ACT_WHY_WIDE] = {"wide", "Its home is every CPU that it may use."},
        [ACT_WHY_BORROWS] = {"borrows", "It borrows a CPU, or its confinement was lifted a moment ago."},
        [ACT_WHY_CHANGING] = {"changing", "The cpuset of its cgroup is being changed."},
        [ACT_WHY_FOREIGN] = {"foreign", "Somebody else has changed the cpuset of its cgroup."},
        [ACT_WHY_REFUSED] = {"refused", "The cpuset of its cgroup could not be changed."},
    };

    static_assert(ARRAY_SIZE(whys) == ACT_WHY_MAX, "one text per reason");
    assert(why >= 0 && why < ACT_WHY_MAX);
    return &whys[why];
}

const char *act_why_name(ActWhy why)
{
    return why_of(why)->name;
}

const char *act_why_text(ActWhy why)
{
    return why_of(why)->text;
}
