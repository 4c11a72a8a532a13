/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Names on the bus. Methods that describe something return dictionaries (a{sv}, or aa{sv} for a list), so
 * that keys can be added without breaking clients; `numaplacectl --json` prints exactly these keys. */

#define NUMAPLACE_BUS_NAME              "org.numaplace1"
#define NUMAPLACE_BUS_PATH              "/org/numaplace1"
#define NUMAPLACE_BUS_INTERFACE_MANAGER "org.numaplace1.Manager"

/* Below it one object for each workload, whose name sd_bus_path_encode(3) makes a path of; an ObjectManager at
 * NUMAPLACE_BUS_PATH lists them. */
#define NUMAPLACE_BUS_PATH_WORKLOADS     "/org/numaplace1/workload"
#define NUMAPLACE_BUS_INTERFACE_WORKLOAD "org.numaplace1.Workload"

/* What polkit is asked on the system bus when somebody who is not root wants to change something: everything, or one
 * workload or process, whose name is the detail "workload". Who may do the first may do the second. */
#define NUMAPLACE_ACTION_MANAGE   "org.numaplace1.manage"
#define NUMAPLACE_ACTION_OVERRIDE "org.numaplace1.override"

/* Errors of the manager's methods. Every method may also fail with org.freedesktop.DBus.Error.NoMemory. */
#define NUMAPLACE_ERROR_NO_SUCH_WORKLOAD "org.numaplace1.Error.NoSuchWorkload"
#define NUMAPLACE_ERROR_NO_SUCH_PROCESS  "org.numaplace1.Error.NoSuchProcess"
#define NUMAPLACE_ERROR_BAD_POLICY       "org.numaplace1.Error.BadPolicy"
#define NUMAPLACE_ERROR_NOT_PERMITTED    "org.numaplace1.Error.NotPermitted"
#define NUMAPLACE_ERROR_LIMIT            "org.numaplace1.Error.LimitExceeded"
#define NUMAPLACE_ERROR_NOT_RESTORED     "org.numaplace1.Error.NotRestored"

/* Entries one reply holds at most: longer lists are asked for page by page. */
#define NUMAPLACE_BUS_PAGE_MAX 1000U

/* org.numaplace1.Manager
 *
 *   GetStatus() -> a{sv}                              keys: status
 *   GetTopology() -> a{sv}                            keys: topology
 *   ListCpus() -> aa{sv}                              keys: cpu, ascending
 *   ListWorkloads() -> aa{sv}                         keys: workload, in the order policies are tried
 *   GetWorkload(s name) -> a{sv}                      keys: workload, and groups, leases, refusals
 *   ListTasks(s name, i pid, i tid, u max) -> aa{sv}  keys: task. Those behind (pid, tid), ascending: start
 *                                                     with 0, 0, go on with the last one until the
 *                                                     reply is empty
 *   Explain(s pid_or_name) -> a{sv}                   keys: explanation
 *   ListMoves(t after, u max) -> aa{sv}               keys: move. The oldest with a sequence above `after`
 *   ListHistory(t after, u max) -> aa{sv}             keys: step. The oldest with a sequence above `after`; ask again
 *                                                     until the reply is empty. The last one is not over yet
 *   Pause(s name), Resume(s name), Release(s name)    a workload; for Resume and Release also a pid; "" is
 *                                                     everything
 *   AssignProcess(i pid, t start_ticks, s policy, b starting) -> a{sv}
 *                                                     keys: assignment. Puts a process, and what it starts from then
 *                                                     on, under a policy, whatever its [Match] sections say; answered
 *                                                     by the tick that has placed it. `starting`: it will give itself
 *                                                     the memory policy of the answer. Only its owner and root may
 *   Reload()                                          BadPolicy, with the first message: nothing has changed
 *   signal Moved(a{sv})                               keys: move. At most 64 per tick, fewer with many
 *                                                     clients; after a gap in `sequence` ask ListMoves
 *   signal Refused(a{st})                             how often each reason was met since the last one; at
 *                                                     most every 10 s
 *   properties Version s, Mode s (as `mode` of status), Paused b (everything), Workloads u (their number)
 *
 * org.numaplace1.Workload, one object each; InterfacesAdded and InterfacesRemoved when policies come and go
 *   Get() -> a{sv}                                    as GetWorkload
 *   Pause(), Resume(), Release()
 *   properties Name s, Description s, Paused b, Home s (CPUs), HomeNodes s, Processes u, Tasks u, Lends t,
 *   Recalls t. Paused, Home and HomeNodes, and Paused and Workloads above, have change signals; the others
 *   change all the time, or never.
 *
 * `max` is cut at NUMAPLACE_BUS_PAGE_MAX; 0 means that many. Pause, Resume, Release, AssignProcess and Reload are
 * for root and for the user the daemon runs as, and on the system bus for whom polkit lets; anyone else gets
 * NotPermitted.
 *
 * Conventions: CPU and node sets are strings in the kernel's list form ("0-3,8"), "" is the empty set or
 * "none"; nodes are operating-system numbers. Loads are in permille of one CPU. Instants (`time_usec`) are
 * CLOCK_MONOTONIC microseconds, `realtime_usec` is CLOCK_REALTIME. Foreign text (comm, cgroup) is UTF-8
 * with everything else, control characters, and a backslash before an x, written as \xNN. Integers are u
 * unless said.
 *
 * status
 *   version s, pid i, state s ("running", "paused"), mode s ("active", "observe", "dry-run"), rehearsal u (pretend
 *   nodes, 0: real), origin s ("live", "xml", "synthetic", "rehearsal"), nodes u, cpus u, uptime_usec t, tick t,
 *   time_usec t, watches b (nothing may be changed: ticks are rare), pressed b (someone waits or a lease runs: fast
 *   ticks), partial b, fast_tick_usec t and slow_tick_usec t (intervals now), tick_lately_usec t (from one tick to the
 *   next, over some ten seconds), fast_tick_setting_usec t, slow_tick_setting_usec t, stretch_permille u (1000:
 *   MaxCPU= does not slow the ticks down; 2000: twice as slow), tick_late_usec t (what the last tick that was due at a
 *   time was late), tick_late_max_usec t (at most, since start), tick_cpu_usec t (CPU time that the tick before this
 *   answer took), tick_cpu_max_usec t, unfinished b (it has left something for the next), policies u, workloads u,
 *   groups u, processes u, tasks u, pinned u (threads of these that are left as somebody else pinned them), leases u,
 *   assigned u (processes under a policy by AssignProcess), assigned_refused t (at a limit), overloaded u, idle u
 *   (CPUs, P1), schedstat b, schedstat_version u, task_schedstat b, psi b, psi_trigger b, numa b, cgroup s ("none",
 *   "v1", "hybrid", "v2"), cpuset_v1 b, fence_units b (Act=unit can be had), fence_cpusets s ("none", "v1", "v2":
 *   Act=cpuset), libcpuset s ("none": not built in, "built-in", "used": for Act=cpuset at /dev/cpuset), forgets_masks
 *   b (a kernel on which threads forget their masks when a cpuset changes), fences u, fences_up u (cpusets that are a
 *   home now), memory_fences_up u (that keep its memory in as well), cpu_usec t (the daemon's CPU time),
 *   probe_cpu_usec t, plan_cpu_usec t, act_cpu_usec t, managed_cpu_usec t (of all managed tasks), cpu_permille u (of
 *   one CPU, over some ten seconds), max_cpu_permille u, search_ppm u (plan_cpu_usec in millionths of
 *   managed_cpu_usec), action_cost_usec t, rss_bytes t, lends t, recalls t, homes t, releases t, memory_orders t
 *   (carried out since start; of orders: given), outcomes a{st} (by name), refused a{st} (by reason), moves t
 *   (sequence of the newest one), reloads t, reload_failures t, topology_reloads t, foreign_restores t (threads left
 *   as somebody else pinned them, when they were released), log_suppressed t, slices t (ticks that left something for
 *   the next), slice_threads_max t (threads that one has gone through at most), system_bus b (clients are served
 *   there, too), clients u, clients_max u, clients_refused t (at a limit), clients_disconnected t (to blame for it),
 *   reads t, gone t, unparsable t, reads_put_off t, reads_hanging t (threads that wait for what does not come),
 *   unreadable t (processes not decided about because of that), over_limit t, kept_open t, quiet t, memory_reads t (of
 *   where memory lies), memory_cpu_usec t (what they cost; not in cpu_usec) (ProbeStatistics), free aa{sv} (of each
 *   node: node u, bytes t; unused, or clean file pages nobody used lately; empty while nobody's memory is looked at),
 *   memory_moves b (memory is moved at all), kernel_balances b (kernel.numa_balancing moves it),
 *   memory_pressure_permille u (the kernel's mean of ten seconds), memory_moving u (orders), memory_moved_bytes t,
 *   memory_huge_pages t, memory_blocked_usec t and memory_longest_usec t (calls that moved, all and the longest: so
 *   long at most was somebody kept from memory), memory_rate_bytes t (a second, to each node, while others wait for
 *   memory; 0: no limit), memory_hanging u (threads), memory_outcomes a{st} (orders, by how they ended),
 *   memory_refused a{st} (bytes, by why they stayed), use... (of all processes), use_left_out u (processes, for being
 *   too many), use_loop_cpu_usec t (of the event loop, in cpu_usec), neighbours aa{sv} (who else decides about CPUs
 *   and memory: name s, out of numad, numa-balancing, sched-ext, cache-aware-scheduling, isolated-cpus,
 *   cpuset-partition, nohz-full, kubelet-cpu-manager, tuned and irqbalance, detail s, and text s, what is done about
 *   it), left_threads u and left_cgroups u (at the start: with what an earlier daemon gave them, when this one does
 *   not put them back), left_kept b (that one meant it to stay), config s (file, "" when there is none),
 *   runtime_directory s, policy_directories as
 *
 * topology
 *   origin s, source s, rehearsal u, restricted b, distances_known b, cpus s, n_cpus u, n_nodes u, n_llcs
 *   u, n_cores u,
 *   nodes aa{sv}: node u, cpus s, n_cpus u, memory_bytes t
 *   distances au: row-major over `nodes`, 10 is local
 *   llcs aa{sv}: cpus s, nodes s
 *   domains aa{sv}: numa b, distance u, span u, imb_numa_nr u (innermost first, P5)
 *   text s: what `numaplacectl topology` prints
 *
 * cpu
 *   cpu u, node u, llc u, core u, online b, usable b, busy_permille u, wait_permille u, wait_known b,
 *   idle_usec t (length of the present idle spell, 0: not idle), lent_pid i, lent_tid i (0: not lent),
 *   cooldown_left_usec t
 *
 * workload
 *   name s, description s, path s (policy file), mode s, act s, group_by s, steal b, scope s, paused b,
 *   processes u, tasks u, groups u, leases u, run_permille u, wait_permille u, lends t, recalls t, home s
 *   (CPUs), home_nodes s (of all its groups together), would..., memory...
 *   GetWorkload instead and besides: use..., groups aa{sv} (group), lent aa{sv} (lease), refusals aa{sv} (refusal)
 *   Those of Mode=none are not listed: they are not workloads.
 *
 * gain... (what the last change of home was worth; absent when nothing is known of before, or yet of after)
 *   gain_age_usec t (since the change), gain_waits_before_permille u and gain_waits_permille u (of the CPU time its
 *   threads want, what they wait), gain_local_before_permille u and gain_local_permille u (as local_permille), each a
 *   mean of up to 32 slow ticks, and for each the standard deviation of one, ..._noise_permille u
 *
 * group
 *   id t, key s, home s, home_nodes s, would..., gain..., memory..., tasks u, run_permille u, wait_permille u, leases
 *   u, age_usec t, home_age_usec t (0: it has none), means... (how it is kept at home: means s, "affinity" or, around
 *   that, "unit", "cgroup2", "cgroup1" or, at /dev/cpuset, "cpusetfs"; means_reason s and means_text s why that,
 *   means_error s, means_memory b: its memory is kept in as well), roams b (it needs all nodes, and is not confined
 *   for that), demand_permille u (the CPUs' worth a home is chosen for), frozen_usec t (its home stays so long for
 *   going back and forth), converged b (it stays for having its memory there: nine tenths to begin with, three
 *   quarters later; P16), vetoes u, backoff_ticks u, backoff_left_ticks t
 *
 * would...
 *   observed b (it is only observed), would_home s and would_home_nodes s (where acting would have it; "": it is
 *   placed,
 *   or would not be confined)
 *
 * memory...
 *   memory aa{sv}: node u, bytes t (nodes without any are left out), memory_evidence s ("residency": how much of it
 *   lies where, not who uses it; "": not known), memory_age_usec t (of the oldest reading), memory_unknown u (processes
 *   of which it is not known), memory_strength_permille u (the share of the node with most; P16), memory_follows b (it
 *   goes where the home is), memory_striped b (and evenly on its nodes; P17), memory_moving u (processes whose memory
 *   is under way), memory_todo_bytes t (of it, to be moved yet); not of a process: memory_orders t (that are over),
 *   memory_moved_bytes t, memory_refused_bytes t (that should have moved and could not), memory_blocked_usec t
 *
 * use...
 *   who uses which memory: use_evidence s ("write", "kernel", "residency": it is not looked at; what a policy gets, if
 *   its processes need it) and use_why s, use_processes u (looked at), use_failed u (of these, could not be),
 *   use_rounds t, use_samples t, use_lost t, use_cpu_usec t (the daemon's, not in cpu_usec), use_target_usec t (what it
 *   cost those looked at), use_stall_usec t (so long at most was one stopped), use_resting t (blocks that were to move,
 *   and rest), use_blocks a{st} (judged, by what came of it: "move", "local", "unknown", "mixed", "busy", ...),
 *   scan_windows t, scan_sequences t, scan_bytes t (addresses), scan_covered_permille u (of the regions that could be
 *   looked at in the last complete sequence), scan_skipped a{st} (regions left out, or looked at all the same, by why:
 *   "unsuitable", "shared_ro", "inaccessible", "scan_delay", "seq_completed", "pid_inactive", "ignore_pid_inactive",
 *   "forced"); of a process besides: use_state s ("looking", "not-looked-at", "gone", "tracked": somebody else uses its
 *   soft-dirty bits, "too-large", or the name of an error), use_shared_permille u (of its blocks, used by several
 *   threads), use_period_usec t (from one round to the next, unless their cost wants more; 0: it is not looked at)
 *
 * lease
 *   pid i, tid i, comm s, cpu u, node u, cross_node b, group t, age_usec t, left_usec t, since_tick t
 *
 * assignment
 *   policy s, mode s, managed b (false: Mode=none, or MaxTasks= is reached), placed b (its threads are at home), home
 *   s, home_nodes s, stripe s (nodes its new memory is to be interleaved over, "": it is not)
 *
 * task
 *   pid i, tid i, comm s, process s (comm of the process), start_ticks t, uid u, unit s, cgroup s, class s ("normal",
 *   "idle", "realtime", "deadline", "ext"), hands s ("free", "foreign", "repinned", "per-cpu", "class", "denied",
 *   "unknown"), last_cpu i, node i (of last_cpu; -1: not known), memory_node i (that with most of its process's memory;
 *   -1: not known), use aa{sv} (node u, pages t: what it uses, by where that lies; empty: not known),
 *   use_private_permille u (of it, used by nobody else, at least), use_buddy i (the thread that it shares most with; 0:
 *   none), use_age_usec t, home_node i (the node of a home of several that it lives on; -1: any), run_permille u,
 *   wait_permille u, run_mean_permille u, wait_mean_permille u, allowed s, original s ("" when not changed by the
 *   daemon), lent_cpu i (-1: none), group t, workload s, last_move_usec t (instant, 0: never)
 *
 * move
 *   sequence t, time_usec t, realtime_usec t, tick t, kind s ("set-home", "lend", "recall", "release", "move-pages":
 *   that the order was taken is what "done" says), rule s, text s (the rule in a sentence), mechanism u (the N of
 *   P<N>), outcome s ("done", "gone", "foreign" (left as somebody else pinned it), "retry", "refused", "unjournalled",
 *   "skipped", "partly", "would" (it is only observed)), count u (how often in a row; above 1 only when not "done"),
 *   pid i, tid i (0: the whole
 *   process), start_ticks t, comm s, workload s, group t, from s, to s (CPU masks), cpu i (-1: none), node i (of cpu),
 *   home_nodes s, from_nodes s, to_nodes s, help_nodes s (whose CPUs may help to move) and bytes t (memory), cross_node
 *   b, distance u, lease_usec t, value u, limit u (the numbers that decided; of memory, MiB)
 *
 * step
 *   sequence t, realtime_usec t (of its end), span_usec t (60 s and more; 1440 are kept), looks u (taken in it),
 *   cpu_usec t (of the daemon, all threads), homes t, lends t, memory_moved_bytes t, workloads aa{sv} (those that ran
 *   most: workload s, run_permille u, wait_permille u, local_permille u (absent: not known), runs aa{sv} (of each node:
 *   node u, run_permille u))
 *
 * refusal
 *   reason s, text s, mechanism u, count t, time_usec t (of the last), tick t, pid i (0: the group as a
 *   whole), tid i (0: the process), workload s, group t, cpu i (-1: none), value t, limit t
 *
 * explanation
 *   subject s (as asked), kind s ("process", "workload"), managed b, verdict s ("managed", "released", "later",
 *   "pending", "self", "out-of-reach" (kernel threads), "awaited" (its command line or environment is being read),
 *   "hangs" (and does not come), "crowded" (and is not read, because too many of its user's do not come), or the
 *   reason that keeps it from being placed: "no-policy", "mode-none", "paused", "foreign-affinity", "repinned",
 *   ...), text s (the verdict in one sentence),
 *   actions aa{sv} (move, oldest first), would aa{sv} (move: what acting would have done), refusals aa{sv} (refusal,
 *   oldest first)
 *   processes: pid i, comm s, uid u, unit s, cgroup s, assigned b (it, or who started it, by AssignProcess), stripe s
 *   (the nodes its new memory is interleaved over since then, "": it is not; P17), policy s, policy_path s,
 *   policy_section u, policy_file s and policy_line u (the [Match] section it falls under, from 1, and where that
 *   stands; absent when the process is of another kind by now), workload s, group t, group_key s, home s, home_nodes
 *   s, would..., gain..., local_permille u (of its memory, on the nodes that its threads ran on last) and
 *   would_local_permille u (at its home, with memory that follows there), would_gain_permille i with
 *   would_gain_least_permille i and would_gain_most_permille i (how much more it would do in the same time, and the
 *   range of that), would_spread_if_private b (several of its threads run, and that they share memory is not known: it
 *   is sampled only of what is placed), memory..., means..., cpuset s (without what we made of it), evidence s
 *   ("run-and-wait", "run-only": what is known of its load), tasks aa{sv} (task, at most 64), n_tasks u, lent aa{sv}
 *   (lease)
 *   workloads: all of "workload" with groups and lent
 *   A key that does not apply is absent.
 */
