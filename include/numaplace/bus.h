/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Names on the bus. Methods that describe something return dictionaries (a{sv}, or aa{sv} for a list), so
 * that keys can be added without breaking clients. `numaplacectl --json` prints exactly these keys. The list
 * below names the dictionary of numaplace-json(5) that each method returns. */

#define NUMAPLACE_BUS_NAME              "org.numaplace1"
#define NUMAPLACE_BUS_PATH              "/org/numaplace1"
#define NUMAPLACE_BUS_INTERFACE_MANAGER "org.numaplace1.Manager"

/* Each workload has an object below this path, named by sd_bus_path_encode(3). An ObjectManager at
 * NUMAPLACE_BUS_PATH lists them. */
#define NUMAPLACE_BUS_PATH_WORKLOADS     "/org/numaplace1/workload"
#define NUMAPLACE_BUS_INTERFACE_WORKLOAD "org.numaplace1.Workload"

/* polkit actions, checked on the system bus for callers other than root and the daemon's user. The first is for changes
 * that concern everything, the second for one workload or process, named in the detail "workload". The first implies
 * the second. */
#define NUMAPLACE_ACTION_MANAGE   "org.numaplace1.manage"
#define NUMAPLACE_ACTION_OVERRIDE "org.numaplace1.override"

/* Errors of the manager's methods. Every method may also fail with org.freedesktop.DBus.Error.NoMemory. */
#define NUMAPLACE_ERROR_NO_SUCH_WORKLOAD "org.numaplace1.Error.NoSuchWorkload"
#define NUMAPLACE_ERROR_NO_SUCH_PROCESS  "org.numaplace1.Error.NoSuchProcess"
#define NUMAPLACE_ERROR_BAD_POLICY       "org.numaplace1.Error.BadPolicy"
#define NUMAPLACE_ERROR_NOT_PERMITTED    "org.numaplace1.Error.NotPermitted"
#define NUMAPLACE_ERROR_LIMIT            "org.numaplace1.Error.LimitExceeded"
#define NUMAPLACE_ERROR_NOT_RESTORED     "org.numaplace1.Error.NotRestored"

/* The most entries in one reply; clients fetch longer lists page by page. */
#define NUMAPLACE_BUS_PAGE_MAX 1000U

/* org.numaplace1.Manager
 *
 *   GetStatus() -> a{sv}                              Status
 *   GetTopology() -> a{sv}                            Topology
 *   ListCpus() -> aa{sv}                              CPU, ascending
 *   GetCpuLoads() -> a{sv}                            CPU loads: an array for each key, which costs little
 *   ListWorkloads() -> aa{sv}                         Workload, in the order policies are tried
 *   GetWorkload(s name) -> a{sv}                      Workload, with groups, leases, refusals
 *   ListTasks(s name, i pid, i tid, u max) -> aa{sv}  Task, ascending, after (pid, tid): start with 0, 0,
 *                                                     continue with the last one until the reply is empty
 *   Explain(s pid_or_name) -> a{sv}                   Explanation
 *   ListMoves(t after, u max) -> aa{sv}               Move, the oldest with a sequence above `after`
 *   ListHistory(t after, u max) -> aa{sv}             Step, the oldest with a sequence above `after`; repeat
 *                                                     until the reply is empty. The last one is in progress
 *   Pause(s name), Resume(s name), Release(s name)    a workload; for Resume and Release also a PID; "" is
 *                                                     everything
 *   AssignProcess(i pid, t start_ticks, s policy, b starting) -> a{sv}
 *                                                     Assignment. Puts a process and its future descendants
 *                                                     under a policy, whatever its [Match] sections say. The tick that
 *                                                     has placed it answers. `starting`: it will set the memory
 *                                                     policy in the answer. Only for its owner, root and the
 *                                                     user the daemon runs as
 *   Reload()                                          on BadPolicy, with the first message, nothing has changed
 *   signal Moved(a{sv})                               Move. At most 64 per tick, fewer with many
 *                                                     clients; after a gap in `sequence` call ListMoves
 *   signal Refused(a{st})                             count of each reason since the last signal; at most
 *                                                     every 10 s
 *   properties Version s, Mode s (as `mode` of Status), Paused b (everything), Workloads u (their number)
 *
 * org.numaplace1.Workload, one object each; InterfacesAdded and InterfacesRemoved when policies come and go
 *   Get() -> a{sv}                                    as GetWorkload
 *   Pause(), Resume(), Release()
 *   properties Name s, Description s, Paused b, Home s (CPUs), HomeNodes s, Processes u, Tasks u, Lends t,
 *   Recalls t. Paused, Home and HomeNodes emit change signals, as do Paused and Workloads above; the others
 *   change all the time, or never.
 *
 * `max` is capped at NUMAPLACE_BUS_PAGE_MAX; 0 means that limit. Pause, Resume, Release, AssignProcess and
 * Reload are for root, for the user the daemon runs as, and on the system bus for callers that polkit
 * authorizes; others get NotPermitted.
 *
 * numaplace-json(5) explains each key; a lint test compares it with the code. In brief: CPU and node sets are
 * strings in the kernel's list form ("0-3,8"), "" is the empty set or "none"; nodes are operating-system
 * numbers. Loads are in permille of one CPU. Instants (`time_usec`) are CLOCK_MONOTONIC microseconds,
 * `realtime_usec` is CLOCK_REALTIME. Foreign text (comm, cgroup) is UTF-8; bytes that are not, control
 * characters, and a backslash before an x are written as \xNN. A key that does not apply may be absent. */
