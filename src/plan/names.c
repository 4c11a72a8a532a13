/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Names and explanations of what a plan holds. They are part of the bus and of --json, so a name never changes. What
 * holds for all actions of a kind is in the row of its name. */

#include "plan/plan.h"

typedef struct NameText {
    const char *name;
    const char *text;
} NameText;

static const PlanKindTraits kinds[] = {
    [PLAN_KIND_RELEASE] = {"release", .masks = true, .puts_back = true},
    [PLAN_KIND_RECALL] = {"recall", .masks = true, .names_cpu = true},
    [PLAN_KIND_SET_HOME] = {"set-home", .spends = true, .masks = true},
    [PLAN_KIND_LEND] = {"lend", .spends = true, .masks = true, .names_cpu = true, .takes_cpu = true},
    [PLAN_KIND_PUSH] = {"push", .spends = true, .masks = true, .names_cpu = true, .takes_cpu = true},
    [PLAN_KIND_MOVE_PAGES] = {"move-pages", .spends = true},
};
static_assert(ARRAY_SIZE(kinds) == PLAN_KIND_MAX,
              "the last kind has a row; test_names() looks for the others");

/* The kinds of action that a rule decides. */
enum {
    RELEASES = 1U << PLAN_KIND_RELEASE,
    RECALLS = 1U << PLAN_KIND_RECALL,
    SETS_HOME = 1U << PLAN_KIND_SET_HOME,
    LENDS = 1U << PLAN_KIND_LEND,
    PUSHES = 1U << PLAN_KIND_PUSH,
    MOVES_PAGES = 1U << PLAN_KIND_MOVE_PAGES,
};

typedef struct RuleRow {
    const char *name;
    const char *text;
    unsigned kinds;
} RuleRow;

static const RuleRow rules[PLAN_RULE_MAX] = {
    [PLAN_RULE_FIXED_HOME] = {"fixed-home", "The policy names its nodes (Mode=fixed, Nodes=).", SETS_HOME},
    [PLAN_RULE_FIRST_HOME] = {"first-home", "Its first home: the fewest near nodes with room for it.",
                              SETS_HOME},
    [PLAN_RULE_COMPRESS] = {"compress", "Fewer nodes have room for it now.", SETS_HOME},
    [PLAN_RULE_SPREAD] = {"spread", "It needs more nodes.", SETS_HOME},
    [PLAN_RULE_REHOME] =
        {"rehome",
         "Other nodes suit it better: they are nearer to its memory, or another group takes its place.",
         SETS_HOME},
    [PLAN_RULE_REVERT] = {"revert", "Its threads wait longer there than they did before (SettleSec=).",
                          SETS_HOME},
    [PLAN_RULE_NEW_MEMBER] = {"new-member", "It joined a group that has a home.", SETS_HOME},
    [PLAN_RULE_IDLE_NEARBY] = {"idle-nearby", "It waits for a CPU while one outside its home is idle.",
                               LENDS},
    [PLAN_RULE_IDLE_CORE] =
        {"idle-core",
         "It shares a core, or other threads wait on its node; another node of its home has an idle core.",
         PUSHES},
    [PLAN_RULE_OWNER_WAITS] = {"owner-waits", "A thread waits for the lent CPU: its owner is back.", RECALLS},
    [PLAN_RULE_LEASE_ENDED] = {"lease-ended", "The lease (LeaseSec=) has ended.", RECALLS},
    [PLAN_RULE_DEMAND_FELL] = {"demand-fell",
                               "The CPU is no longer needed: the thread sleeps, or its home has "
                               "an idle CPU.",
                               RECALLS},
    [PLAN_RULE_CPU_GONE] = {"cpu-gone",
                            "The lent CPU is offline, reserved, or outside the thread's cpuset now.",
                            RECALLS},
    [PLAN_RULE_HOME_CHANGED] = {"home-changed",
                                "Its home, or the part of its home that it may use, has changed.",
                                RECALLS | SETS_HOME},
    [PLAN_RULE_WORKLOAD_GONE] = {"workload-gone", "No policy gives it a home now.", RELEASES},
    [PLAN_RULE_PAUSED] = {"paused", "The administrator paused or released the workload.", RELEASES | RECALLS},
    [PLAN_RULE_REPINNED] = {"repinned",
                            "Somebody else changed the CPU affinity of the process; it is left alone "
                            "from now on.",
                            RELEASES},
    [PLAN_RULE_ROAMS] =
        {"roams", "It needs all nodes, or is left to the kernel's balancing: the kernel places its threads.",
         RELEASES},
    [PLAN_RULE_HOME_GONE] = {"home-gone", "Its home has no usable CPU left inside its cpuset.", RELEASES},
    [PLAN_RULE_ANEW] =
        {"anew", "The CPUs of the machine or the daemon's settings changed; everything is placed anew.",
         RELEASES},
    [PLAN_RULE_FOLLOW_HOME] = {"follow-home", "Some of its memory is outside the nodes of its home.",
                               MOVES_PAGES},
    [PLAN_RULE_OWN_NODE] = {"own-node", "This node of its home has, or will have, the memory it uses.",
                            SETS_HOME},
    [PLAN_RULE_INTERLEAVE] = {"interleave",
                              "Its memory is to be interleaved over its nodes (Mode=interleave).",
                              MOVES_PAGES},
    [PLAN_RULE_EVEN_OUT] = {"even-out",
                            "Nearly all of its memory is on one of the nodes it runs on, so its "
                            "threads run at different speeds.",
                            MOVES_PAGES},
    [PLAN_RULE_FOLLOW_PIN] = {"follow-pin",
                              "Some of its memory is outside the nodes that somebody else "
                              "pinned its threads to.",
                              MOVES_PAGES},
    [PLAN_RULE_GO_BACK] =
        {"go-back",
         "It ran more slowly once its memory was brought together, so the memory is interleaved over the "
         "nodes where it lay and those of its home.",
         MOVES_PAGES},
    [PLAN_RULE_FOLLOW_USE] = {"follow-use",
                              "Some of its memory is not on the node of the threads that use it.",
                              MOVES_PAGES},
};

static const NameText reasons[PLAN_REASON_MAX] = {
    [PLAN_REASON_NO_POLICY] = {"no-policy", "No policy matches it."},
    [PLAN_REASON_MODE_NONE] = {"mode-none", "Its policy says Mode=none."},
    [PLAN_REASON_PAUSED] = {"paused", "Its workload is paused or released; resume ends that."},
    [PLAN_REASON_OBSERVE] = {"observe", "Nothing may be changed: Act=observe, dry run, or no permission."},
    [PLAN_REASON_TOO_YOUNG] = {"too-young", "It is too young to be placed (MinAgeSec=)."},
    [PLAN_REASON_FOREIGN_AFFINITY] = {"foreign-affinity",
                                      "Somebody else chose its CPUs (ForeignAffinity=respect)."},
    [PLAN_REASON_REPINNED] = {"repinned", "Somebody else changed its CPUs while it was managed."},
    [PLAN_REASON_PER_CPU] = {"per-cpu", "It is bound to one CPU."},
    [PLAN_REASON_CLASS] = {"class", "Threads of its scheduling class are never placed."},
    [PLAN_REASON_DENIED] = {"denied", "The kernel refused an earlier change."},
    [PLAN_REASON_UNREADABLE] = {"unreadable",
                                "It could not be read completely, so nothing is decided about it."},
    [PLAN_REASON_NO_HOME] = {"no-home",
                             "It is not confined; the kernel may run it on every CPU it is allowed to use."},
    [PLAN_REASON_IDLE] = {"idle", "It hardly runs, so a home would not help."},
    [PLAN_REASON_NOT_OVERLOADED] = {"not-overloaded",
                                    "Its threads do not wait long enough on two ticks in a row."},
    [PLAN_REASON_HOME_HAS_IDLE] = {"home-has-idle", "A CPU of its home is idle, and the kernel can use it."},
    [PLAN_REASON_NO_IDLE_CPU] = {"no-idle-cpu", "No CPU outside its home is idle and free to be lent."},
    [PLAN_REASON_STEAL_OFF] = {"steal-off", "Its policy says Steal=no."},
    [PLAN_REASON_SCOPE] = {"scope", "The idle CPUs are farther away than Scope=."},
    [PLAN_REASON_NODE_LIMIT] = {"node-limit", "The machine has more nodes than NodeLimit=."},
    [PLAN_REASON_MAX_DISTANCE] = {"max-distance", "The idle CPUs are farther away than MaxDistance=."},
    [PLAN_REASON_IDLE_TOO_SHORT] = {"idle-too-short",
                                    "The CPU is not expected to stay idle long enough to pay for "
                                    "the move."},
    [PLAN_REASON_RESIDENCY] = {"residency",
                               "It, or its memory, was moved a short time ago (MinResidencySec=)."},
    [PLAN_REASON_COOLDOWN] = {"cooldown", "The CPU was taken back a short time ago."},
    [PLAN_REASON_LOCALITY] = {"locality", "Leaving the node is delayed for some passes."},
    [PLAN_REASON_BACKOFF] = {"backoff", "The last passes changed nothing, so the next one is delayed."},
    [PLAN_REASON_BUDGET] = {"budget", "This tick's budget of actions or of searches is used up."},
    [PLAN_REASON_RATE_WORKLOAD] =
        {"rate-workload", "The workload has used up its moves across nodes (CrossNodeMovesPerSec=)."},
    [PLAN_REASON_RATE_HOST] = {"rate-host", "The machine has used up its moves across nodes."},
    [PLAN_REASON_CPUSET] = {"cpuset", "The idle CPUs are outside its cpuset."},
    [PLAN_REASON_NO_CPUS] = {"no-cpus", "Nodes= has no usable CPU inside its cpuset."},
    [PLAN_REASON_REHEARSAL] = {"rehearsal", "The nodes are emulated: no memory lies on them."},
    [PLAN_REASON_FOLLOW_OFF] = {"follow-off", "Its policy says Follow=no: memory stays where it is."},
    [PLAN_REASON_EVIDENCE] = {"evidence", "It is not known yet where its memory is now."},
    [PLAN_REASON_MEMORY_NEAR] = {"memory-near",
                                 "Too little of its memory is outside its home to be worth moving."},
    [PLAN_REASON_UNSETTLED] = {"unsettled", "Its home is too new for its memory to be interleaved."},
    [PLAN_REASON_KERNEL_BALANCES] =
        {"kernel-balances",
         "It would be spread over several nodes, and the kernel's balancing (kernel.numa_balancing), which "
         "sees which thread uses which part, moves it."},
    [PLAN_REASON_MEMORY_PRESSURE] = {"memory-pressure", "Tasks wait for memory (MaxPressure=)."},
    [PLAN_REASON_HEADROOM] = {"headroom", "The nodes of its home have no room for it (HeadroomPercent=)."},
    [PLAN_REASON_BANDWIDTH] =
        {"bandwidth",
         "Its home would give it less than four fifths of the bandwidth it has where its memory is."},
    [PLAN_REASON_RATE_MEMORY] = {"rate-memory",
                                 "Memory of another process of the workload is being moved, and together "
                                 "they would exceed RateLimit=."},
    [PLAN_REASON_MEMORY_EVEN] = {"memory-even", "Its memory lies evenly enough on its nodes."},
    [PLAN_REASON_FITS_NODE] =
        {"fits-node",
         "The node with nearly all of its memory has enough CPUs for it, so no thread need run elsewhere."},
    [PLAN_REASON_EVEN_OUT_OFF] = {"even-out-off",
                                  "Interleaving memory that lies on one node is off (EvenOut)."},
    [PLAN_REASON_MEMORY_BOUND] = {"memory-bound", "Somebody else chose the nodes of its memory (numactl, "
                                                  "mbind)."},
    [PLAN_REASON_SETTLING] = {"settling",
                              "It got this home a short time ago and keeps it until it can be judged."},
    [PLAN_REASON_TO_AND_FRO] = {"to-and-fro",
                                "It changed its home back and forth, and stays for now (PingPongSec)."},
    [PLAN_REASON_MEMORY_MOVING] = {"memory-moving", "Much of its memory is being moved."},
    [PLAN_REASON_SLOWER] = {"slower", "It ran more slowly when it was brought together on fewer nodes."},
    [PLAN_REASON_CONVERGED] = {"converged", "Nearly all of its memory is on the node of its home."},
    [PLAN_REASON_USE_AWAITED] =
        {"use-awaited",
         "The daemon is finding out which thread uses which memory, or counts how fast the process "
         "runs (Evidence=)."},
    [PLAN_REASON_ALL_BUSY] = {"all-busy", "No CPU is idle, and it already runs on the node of its memory."},
    [PLAN_REASON_POOLED] =
        {"pooled", "With a home node each, its threads waited longer for CPUs than local memory is worth."},
};

static const char *const outcomes[PLAN_OUTCOME_MAX] = {
    [PLAN_OUTCOME_DONE] = "done",       [PLAN_OUTCOME_GONE] = "gone",
    [PLAN_OUTCOME_FOREIGN] = "foreign", [PLAN_OUTCOME_RETRY] = "retry",
    [PLAN_OUTCOME_REFUSED] = "refused", [PLAN_OUTCOME_UNJOURNALLED] = "unjournalled",
    [PLAN_OUTCOME_SKIPPED] = "skipped", [PLAN_OUTCOME_PARTLY] = "partly",
    [PLAN_OUTCOME_WOULD] = "would",
};

static bool in_range(int value, int max)
{
    return value >= 0 && value < max;
}

const char *plan_kind_name(PlanKind kind)
{
    return in_range(kind, PLAN_KIND_MAX) ? kinds[kind].name : "invalid";
}

const PlanKindTraits *plan_kind_traits(PlanKind kind)
{
    assert(in_range(kind, PLAN_KIND_MAX));
    return &kinds[kind];
}

bool plan_rule_decides(PlanRule rule, PlanKind kind)
{
    return in_range(rule, PLAN_RULE_MAX) && in_range(kind, PLAN_KIND_MAX) && rules[rule].kinds & 1U << kind;
}

const char *plan_rule_name(PlanRule rule)
{
    return in_range(rule, PLAN_RULE_MAX) ? rules[rule].name : "invalid";
}

const char *plan_rule_text(PlanRule rule)
{
    return in_range(rule, PLAN_RULE_MAX) ? rules[rule].text : "Not a rule.";
}

const char *plan_reason_name(PlanReason reason)
{
    return in_range(reason, PLAN_REASON_MAX) ? reasons[reason].name : "invalid";
}

const char *plan_reason_text(PlanReason reason)
{
    return in_range(reason, PLAN_REASON_MAX) ? reasons[reason].text : "Not a reason.";
}

const char *plan_outcome_name(PlanOutcome outcome)
{
    return in_range(outcome, PLAN_OUTCOME_MAX) ? outcomes[outcome] : "invalid";
}

const char *plan_mechanism_name(uint64_t mechanism)
{
    static const char *const names[] = {
        [1] = "overload map",   [2] = "stealing",         [3] = "node limit",      [4] = "wake-up placement",
        [5] = "imbalance",      [6] = "migrate and swap", [7] = "guards",          [8] = "scan pacing",
        [9] = "complete scans", [10] = "scan period",     [11] = "preferred node", [12] = "groups",
        [13] = "page filter",   [14] = "buddies",         [15] = "convergence",    [16] = "strength",
        [17] = "interleaving",  [18] = "2 MB blocks",     [19] = "shortage",       [20] = "rate limit",
    };

    return mechanism < ARRAY_SIZE(names) ? names[mechanism] : NULL;
}
