/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The owner of a cgroup decides whether it may be fenced. Below systemd every cgroup has one. Those of units
 * are the manager's, which is asked to change them. Those below a unit with Delegate= are the unit's, and the
 * manager marks that with an extended attribute. Where systemd does not run, and on version 1, where it
 * leaves the cpuset controller alone, a cpuset belongs to its maker.
 *
 * Version 1 is read here wherever it is. At /sys/fs/cgroup/cpuset it is also written here: libcpuset knows
 * only the cpuset file system from before 2007, at /dev/cpuset (fence/libcpuset.c). */

#include "act/fence/place.h"

#include "act/fence/libcpuset.h"
#include "base/lines.h"
#include "base/parse.h"
#include "base/root.h"
#include "kernel/cgroup/cpusets.h"
#include "kernel/cgroup/paths.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (const char *at = text; (at = strstr(at, word)); at += n)
        if ((at == text || at[-1] == ' ') && (at[n] == '\0' || at[n] == ' ' || at[n] == '\n'))
            return true;
    return false;
}

void fence_host_read(int root_fd, ActHost *ret)
{
    CpusetsV1 v1 = cpusets_v1(root_fd);
    char controllers[1024];

    *ret = (ActHost){
        .cpuset2 =
            root_read(root_fd, CGROUP_ROOT "/cgroup.controllers", controllers, sizeof(controllers)) > 0 &&
            has_word(controllers, "cpuset"),
        .cpuset1 = v1 == CPUSETS_V1_CGROUP,
        .cpusetfs = v1 == CPUSETS_V1_DEV && libcpuset_begin(root_fd) == 0,
        .libcpuset = libcpuset_is_built(),
        .forgets = cpusets_forget_masks(root_fd),
    };
    ret->systemd = ret->cpuset2 && root_has(root_fd, "run/systemd/system");
}

/* The outermost unit of a path that can hold processes; directories above it are slices. Returns its length,
 * 0: none. */
static size_t outer_unit(const char *path, const char **ret)
{
    while (*path) {
        size_t len;

        path += strspn(path, "/");
        len = strcspn(path, "/");
        if (cgroup_is_unit(path, len)) {
            *ret = path;
            return len;
        }
        if (!has_suffix(path, len, ".slice"))
            return 0;
        path += len;
    }
    return 0;
}

static bool is_container(const char *path)
{
    static const char *const marks[] = {"docker",     "libpod", "kubepods",     "crio-",
                                        "containerd", "lxc",    "machine.slice"};

    for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
        if (strstr(path, marks[i]))
            return true;
    return false;
}

static ActWhy place_unit(const ActHost *host, const Process *process, FencePlace *ret)
{
    const char *unit = NULL;
    size_t len;

    if (!host->systemd)
        return ACT_WHY_HOST;
    len = outer_unit(process->cgroup, &unit);
    if (len == 0 || len >= sizeof(ret->name) || !process->unit)
        return ACT_WHY_NO_UNIT;
    if (strlen(process->unit) != len || memcmp(process->unit, unit, len) != 0)
        return ACT_WHY_NESTED;
    ret->kind = ACT_FENCE_UNIT;
    (void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)len, unit);
    (void)snprintf(ret->path, sizeof(ret->path), "%.*s", (int)(unit + len - process->cgroup),
                   process->cgroup);
    return ACT_WHY_UP;
}

/* Whether a manager of the system or of a user has marked a cgroup as its unit's own. */
static bool is_delegated(int root_fd, const char *path)
{
    static const char *const names[] = {"trusted.delegate", "user.delegate"};
    char full[PATH_MAX + 32], value[2];

    (void)snprintf(full, sizeof(full), "/proc/self/fd/%d/" CGROUP_ROOT "%s", root_fd, path);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (getxattr(full, names[i], value, sizeof(value)) == 1 && value[0] == '1')
            return true;
    return false;
}

/* Whether a cgroup above this one is delegated; a delegated one itself is still the manager's. */
static bool is_below_delegated(int root_fd, const char *path)
{
    char up[PATH_MAX];
    char *slash;

    (void)snprintf(up, sizeof(up), "%s", path);
    while ((slash = strrchr(up, '/')) && slash > up) {
        *slash = '\0';
        if (is_delegated(root_fd, up))
            return true;
    }
    return false;
}

/* For kernels without /proc/PID/cpuset (Debian's 7.3, without version 1): there a process is in one cgroup
 * for all controllers, enabled or not. */
static int read_unified_path(int root_fd, pid_t pid, char *ret, size_t size)
{
    CLEANUP_FREE char *text = NULL;
    CgroupPaths paths;
    char path[32];
    size_t len;
    int r;

    (void)snprintf(path, sizeof(path), "proc/%d/cgroup", (int)pid);
    r = root_read_alloc(root_fd, path, CGROUP_TEXT_SIZE, &text, &len);
    if (r == 0)
        r = cgroup_parse(text, &paths);
    if (r < 0)
        return r;
    return (size_t)snprintf(ret, size, "%s", paths.cpuset) < size ? 0 : -ENAMETOOLONG;
}

/* Where a process is in the hierarchy of the cpuset controller; on version 2, at or below the nearest level
 * that has it enabled. The kernel's own file comes first: on version 1 /proc/PID/cgroup shows the root for a
 * process whose first thread has ended. 0 or -errno. */
static int read_path(int root_fd, pid_t pid, char *ret, size_t size)
{
    char path[32];
    ssize_t n;

    (void)snprintf(path, sizeof(path), "proc/%d/cpuset", (int)pid);
    n = root_read(root_fd, path, ret, size);
    if (n == -ENOENT)
        return read_unified_path(root_fd, pid, ret, size);
    if (n < 0)
        return (int)n;
    if (ret[0] != '/')
        return -ENOENT;
    ret[strcspn(ret, "\n")] = '\0';
    return 0;
}

static ActWhy place_v1(int root_fd, const Process *process, ActFenceKind kind, FencePlace *ret)
{
    if (read_path(root_fd, process->pid, ret->path, sizeof(ret->path)) < 0)
        return ACT_WHY_SETTLING; /* about to be gone */
    ret->kind = kind;
    return ACT_WHY_UP;
}

static ActWhy place_v2(int root_fd, const ActHost *host, const Process *process, FencePlace *ret)
{
    (void)snprintf(ret->path, sizeof(ret->path), "%s", process->cgroup);
    if (host->systemd && !is_below_delegated(root_fd, ret->path))
        return ACT_WHY_MANAGED;
    ret->kind = ACT_FENCE_CGROUP2;
    return ACT_WHY_UP;
}

static ActWhy place_cgroup(int root_fd, const ActHost *host, const Process *process, FencePlace *ret)
{
    ActWhy why = host->cpuset1    ? place_v1(root_fd, process, ACT_FENCE_CGROUP1, ret)
                 : host->cpusetfs ? place_v1(root_fd, process, ACT_FENCE_CPUSETFS, ret)
                 : host->cpuset2  ? place_v2(root_fd, host, process, ret)
                                  : ACT_WHY_HOST;

    if (why != ACT_WHY_UP)
        return why;
    /* Outside the cgroup namespace, or the root, which has no CPUs of its own. */
    if (strcmp(ret->path, "/") == 0 || strstr(ret->path, "/.."))
        return ACT_WHY_ROOT;
    memcpy(ret->name, ret->path, sizeof(ret->name));
    return ACT_WHY_UP;
}

ActWhy fence_place(int root_fd, const ActHost *host, const Process *process, ActWish wish, FencePlace *ret)
{
    ActWhy why = ACT_WHY_POLICY;

    ret->kind = ACT_FENCE_NONE;
    if (wish == ACT_WISH_AFFINITY)
        return why;
    if (wish == ACT_WISH_AUTO && host->forgets && (host->cpuset1 || host->cpusetfs || host->cpuset2))
        return ACT_WHY_FORGETS;
    why = wish == ACT_WISH_UNIT || (wish == ACT_WISH_AUTO && host->systemd)
              ? place_unit(host, process, ret)
              : place_cgroup(root_fd, host, process, ret);
    if (why == ACT_WHY_UP && wish == ACT_WISH_AUTO && is_container(ret->path))
        return ACT_WHY_CONTAINER;
    return why;
}

static const char *mount_point(ActFenceKind kind)
{
    return kind == ACT_FENCE_CGROUP1    ? CGROUP_ROOT "/cpuset"
           : kind == ACT_FENCE_CPUSETFS ? "dev/cpuset"
                                        : CGROUP_ROOT;
}

/* The path of `file` ("cpuset.cpus") in a cgroup. */
static void name_file(ActFenceKind kind, const char *path, const char *file, char *ret, size_t size)
{
    if (kind == ACT_FENCE_CPUSETFS)
        file += strlen("cpuset.");
    (void)snprintf(ret, size, "%s%s/%s", mount_point(kind), path, file);
}

int fence_read(int root_fd, ActFenceKind kind, const char *path, const char *file, hwloc_bitmap_t ret)
{
    char name[PATH_MAX + 64];
    int r;

    name_file(kind, path, file, name, sizeof(name));
    r = root_read_list(root_fd, name, ret);
    if (r == -ENOENT || r == -ENODEV) {
        *strrchr(name, '/') = '\0';
        /* On version 1 the cgroup was removed, or renamed and perhaps back. */
        if (kind == ACT_FENCE_CGROUP1 || kind == ACT_FENCE_CPUSETFS || !root_has(root_fd, name))
            return -ENOENT;
        hwloc_bitmap_zero(ret); /* the controller is not enabled there */
        return 0;
    }
    return r;
}

/* On version 2 the nearest level that has the controller enabled counts. */
static int read_nearest(int root_fd, char *path, hwloc_bitmap_t ret)
{
    for (;;) {
        char *slash = strrchr(path, '/');
        int r = fence_read(root_fd, ACT_FENCE_CGROUP2, path, "cpuset.cpus.effective", ret);

        if (r < 0 || !hwloc_bitmap_iszero(ret) || !slash)
            return r;
        *slash = '\0';
    }
}

int fence_cpuset(int root_fd, pid_t pid, hwloc_bitmap_t ret)
{
    CpusetsV1 v1 = cpusets_v1(root_fd);
    char path[PATH_MAX];
    int r = read_path(root_fd, pid, path, sizeof(path));

    /* Outside the cgroup namespace. */
    if (r == 0 && strstr(path, "/.."))
        r = -ENOENT;
    if (r == 0)
        r = v1 == CPUSETS_V1_NONE
                ? read_nearest(root_fd, path, ret)
                : fence_read(root_fd, v1 == CPUSETS_V1_DEV ? ACT_FENCE_CPUSETFS : ACT_FENCE_CGROUP1, path,
                             "cpuset.effective_cpus", ret);
    return r == 0 && hwloc_bitmap_iszero(ret) ? -ENOENT : r;
}

static const char *effective_file(ActFenceKind kind, bool memory)
{
    if (kind == ACT_FENCE_CGROUP1 || kind == ACT_FENCE_CPUSETFS)
        return memory ? "cpuset.mems" : "cpuset.cpus";
    return memory ? "cpuset.mems.effective" : "cpuset.cpus.effective";
}

int fence_read_effective(int root_fd, ActFenceKind kind, const char *path, bool memory, hwloc_bitmap_t ret)
{
    return fence_read(root_fd, kind, path, effective_file(kind, memory), ret);
}

int fence_read_above(int root_fd, ActFenceKind kind, const char *path, hwloc_bitmap_t ret)
{
    char up[PATH_MAX];
    char *slash;

    (void)snprintf(up, sizeof(up), "%s", path);
    while ((slash = strrchr(up, '/'))) {
        int r;

        *slash = '\0';
        r = fence_read_effective(root_fd, kind, up, false, ret);
        if (r == -ENOMEM)
            return r;
        if (r == 0 && !hwloc_bitmap_iszero(ret))
            return 0;
    }
    hwloc_bitmap_fill(ret);
    return hwloc_bitmap_isfull(ret) ? 0 : -ENOMEM;
}

static int write_list(int root_fd, ActFenceKind kind, const char *path, const char *file,
                      hwloc_const_bitmap_t set)
{
    CLEANUP_FREE char *list = format_list(set, PARSE_CPU_MAX);
    CLEANUP_CLOSE int fd = -1;
    char name[PATH_MAX + 64];

    if (!list)
        return -ENOMEM;
    name_file(kind, path, file, name, sizeof(name));
    fd = openat(root_fd, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    /* An empty list is an empty line: writing no bytes does nothing. */
    return write(fd, *list ? list : "\n", *list ? strlen(list) : 1) < 0 ? -errno : 0;
}

static int write_once(const FenceList *list, const char *path, hwloc_const_bitmap_t set)
{
    return list->kind == ACT_FENCE_CPUSETFS ? libcpuset_set(path, set, list->memory)
                                            : write_list(list->root_fd, list->kind, path,
                                                         list->memory ? "cpuset.mems" : "cpuset.cpus", set);
}

/* Version 1 refuses offline CPUs (EINVAL). They were lost when they went offline, so the others are written. */
int fence_write(void *context, const char *path, hwloc_const_bitmap_t set)
{
    const FenceList *list = context;
    CLEANUP_BITMAP hwloc_bitmap_t there = NULL;
    int r = write_once(list, path, set);

    if (r != -EINVAL || list->memory || list->kind == ACT_FENCE_CGROUP2)
        return r;
    there = hwloc_bitmap_alloc();
    if (!there)
        return -ENOMEM;
    if (fence_read_above(list->root_fd, list->kind, path, there) == 0 &&
        hwloc_bitmap_and(there, there, set) == 0 && !hwloc_bitmap_iszero(there))
        r = write_once(list, path, there);
    return r;
}

static void name_cgroup(ActFenceKind kind, const char *path, char *ret, size_t size)
{
    (void)snprintf(ret, size, "%s%s", mount_point(kind), path);
}

DIR *fence_open_directory(int root_fd, ActFenceKind kind, const char *path)
{
    char name[PATH_MAX + 64];

    name_cgroup(kind, path, name, sizeof(name));
    return root_open_directory(root_fd, name);
}

const char *fence_next_directory(DIR *dir)
{
    const struct dirent *entry;

    do
        entry = readdir(dir);
    while (entry &&
           (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0));
    return entry ? entry->d_name : NULL;
}

uint64_t fence_inode(int root_fd, ActFenceKind kind, const char *path)
{
    char name[PATH_MAX + 64];
    struct stat st;

    if (kind == ACT_FENCE_UNIT)
        return 0;
    name_cgroup(kind, path, name, sizeof(name));
    return fstatat(root_fd, name, &st, 0) == 0 ? st.st_ino : 0;
}

/* The condition that all processes must meet. */
typedef struct All {
    bool (*wants)(void *userdata, pid_t pid);
    void *userdata;
} All;

static int add_pid(void *userdata, const char *line)
{
    const All *all = userdata;
    int32_t pid;

    return parse_i32(line, &pid) == 0 && all->wants(all->userdata, pid) ? 0 : -ECANCELED;
}

static int all_here(int dir_fd, All *all)
{
    int r = lines_read(dir_fd, "cgroup.procs", add_pid, all);

    /* A threaded cgroup does not list its processes (EOPNOTSUPP). ESRCH: the list is empty. */
    return r == -ECANCELED ? false : r == 0 || r == -ESRCH ? true : r;
}

static int all_below(DIR *dir, unsigned depth, All *all)
{
    const char *name;
    int r = all_here(dirfd(dir), all);

    while (r > 0 && (name = fence_next_directory(dir))) {
        CLEANUP(closedir_p) DIR *child = root_open_directory(dirfd(dir), name);

        r = child && depth < FENCE_DEPTH_MAX ? all_below(child, depth + 1, all) : -ENOENT;
    }
    return r;
}

int fence_all(int root_fd, ActFenceKind kind, const char *path, bool (*wants)(void *userdata, pid_t pid),
              void *userdata)
{
    CLEANUP(closedir_p) DIR *dir = fence_open_directory(root_fd, kind, path);

    return dir ? all_below(dir, 0, &(All){wants, userdata}) : -errno;
}

bool fence_is_mounted(int root_fd, ActFenceKind kind)
{
    static const char *const names[ACT_FENCE_MAX] = {
        [ACT_FENCE_CGROUP1] = "cpuset.cpus",
        [ACT_FENCE_CGROUP2] = "cgroup.controllers",
        [ACT_FENCE_CPUSETFS] = "cpus",
    };
    char name[64];

    (void)snprintf(name, sizeof(name), "%s/%s", mount_point(kind), names[kind]);
    return root_has(root_fd, name);
}

bool fence_is_another(int root_fd, const JournalFence *entry)
{
    uint64_t inode = fence_inode(root_fd, entry->kind, entry->path);

    return inode != 0 && entry->inode != 0 && inode != entry->inode;
}
