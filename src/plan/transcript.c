/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* An entry begins with a line that gives the length of each part, so that a reader can skip parts without
 * parsing them:
 *
 *     plan by_use=no slow_tick=yes ... policies_bytes=120 uses_bytes=0 world_bytes=30211 plan_bytes=96
 *     policy name="jvm" text="[Match]\x0aComm=java\x0a..."     if they differ from those of the entry before;
 *                                                              "# no policies" for an empty set
 *     use pid=100 start_ticks=7 bytes=2097152 from=0 to=1      and its ranges
 *     range start=... end=... to=1
 *     format version=1                                         the World, see world/world-text.c
 *     ...
 *     plan tick=50 now=5000000us ...                           the plan, see plan_format()
 *
 * The World is written after the plan was made and before it is carried out: making it changes nothing. */

#include "plan/transcript.h"

#include "base/parse.h"
#include "base/record/record.h"
#include "plan/ablation.h"

#include <string.h>

#define OFF_SIZE 1024U

typedef struct Head {
    bool by_use;
    char off[OFF_SIZE]; /* World.ablated, as names with blanks between them */
    PlanLimits limits;
    uint64_t policies_bytes, uses_bytes, world_bytes, plan_bytes;
} Head;

static const RecordField head_fields[] = {
    {"by_use", RECORD_BOOL, offsetof(Head, by_use), true},
    {"off", RECORD_CHARS, offsetof(Head, off), .size = OFF_SIZE},
    {"observe", RECORD_BOOL, offsetof(Head, limits.observe)},
    {"slow_tick", RECORD_BOOL, offsetof(Head, limits.slow_tick)},
    {"cross_node_moves_per_sec", RECORD_U32, offsetof(Head, limits.cross_node_moves_per_sec)},
    {"cross_node_burst", RECORD_U32, offsetof(Head, limits.cross_node_burst)},
    {"policies_bytes", RECORD_U64, offsetof(Head, policies_bytes)},
    {"uses_bytes", RECORD_U64, offsetof(Head, uses_bytes)},
    {"world_bytes", RECORD_U64, offsetof(Head, world_bytes), true},
    {"plan_bytes", RECORD_U64, offsetof(Head, plan_bytes), true},
};

typedef struct PolicyRow {
    char *name, *text;
} PolicyRow;

static const RecordField policy_fields[] = {
    {"name", RECORD_TEXT, offsetof(PolicyRow, name), true},
    {"text", RECORD_TEXT, offsetof(PolicyRow, text), true},
};

static const RecordField use_fields[] = {
    {"pid", RECORD_INDEX, offsetof(PlanUse, subject.pid), true},
    {"start_ticks", RECORD_U64, offsetof(PlanUse, subject.start_ticks)},
    {"bytes", RECORD_U64, offsetof(PlanUse, bytes)},
    {"from", RECORD_MASK, offsetof(PlanUse, from), true},
    {"to", RECORD_MASK, offsetof(PlanUse, to), true},
    {"stripe", RECORD_BOOL, offsetof(PlanUse, stripe)},
};

static const RecordField range_fields[] = {
    {"start", RECORD_U64, offsetof(PlanRange, start), true},
    {"end", RECORD_U64, offsetof(PlanRange, end), true},
    {"to", RECORD_INDEX, offsetof(PlanRange, to), true},
};

#define WRITE(out, kind, fields, object) record_write(out, kind, fields, ARRAY_SIZE(fields), object)
#define READ(reader, fields, object)     record_read(reader, fields, ARRAY_SIZE(fields), object)

/* Writing */

static int put_policies(FILE *out, const void *object)
{
    const PolicySet *policies = object;

    if (policies->n_policies == 0)
        (void)fputs("# no policies\n", out);
    for (size_t i = 0; i < policies->n_policies; i++) {
        CLEANUP_FREE char *text = policy_format(policies->policies[i]);
        const PolicyRow row = {.name = policies->policies[i]->name, .text = text};

        if (!text)
            return -ENOMEM;
        WRITE(out, "policy", policy_fields, &row);
    }
    return 0;
}

static int put_uses(FILE *out, const void *object)
{
    const TranscriptEntry *entry = object;

    for (size_t i = 0; i < entry->n_uses; i++) {
        WRITE(out, "use", use_fields, &entry->uses[i]);
        for (size_t k = 0; k < entry->uses[i].n_ranges; k++)
            WRITE(out, "range", range_fields, &entry->uses[i].ranges[k]);
    }
    return 0;
}

static void put_off(uint64_t ablated, char *off)
{
    for (unsigned i = 0; i < ABLATION_MAX; i++)
        if (ablated >> i & 1)
            (void)snprintf(off + strlen(off), OFF_SIZE - strlen(off), "%s%s", off[0] ? " " : "",
                           ablation_names[i]);
}

int transcript_write(FILE *out, char **policies, const TranscriptEntry *entry)
{
    CLEANUP_FREE char *set = format_printed(put_policies, entry->policies, NULL);
    CLEANUP_FREE char *uses = format_printed(put_uses, entry, NULL);
    CLEANUP_FREE char *world = world_dump(entry->world), *plan = plan_format(entry->world, entry->plan);
    Head head = {.by_use = entry->by_use, .limits = *entry->limits};
    bool same;

    if (!set || !uses || !world || !plan)
        return -ENOMEM;
    put_off(entry->world->ablated, head.off);
    same = *policies && strcmp(*policies, set) == 0;
    head.policies_bytes = same ? 0 : strlen(set);
    head.uses_bytes = strlen(uses);
    head.world_bytes = strlen(world);
    head.plan_bytes = strlen(plan);
    WRITE(out, "plan", head_fields, &head);
    (void)fputs(same ? "" : set, out);
    (void)fputs(uses, out);
    (void)fputs(world, out);
    (void)fputs(plan, out);
    if (!same) {
        free(*policies);
        *policies = TAKE_PTR(set);
    }
    return 0;
}

/* Reading */

/* The parts of one entry. */
typedef struct Entry {
    Head head;
    const char *policies, *uses, *world, *plan; /* not terminated */
} Entry;

TranscriptReader transcript_reader(const char *text, size_t len)
{
    return (TranscriptReader){.begin = text, .at = text, .end = text + len};
}

void transcript_reader_done(TranscriptReader *reader)
{
    policy_set_free(reader->policies);
    free(reader->error);
    *reader = (TranscriptReader){0};
}

void transcript_plan_done(TranscriptPlan *plan)
{
    free(plan->recorded);
    free(plan->now);
    *plan = (TranscriptPlan){0};
}

/* Takes ownership of `what`; NULL: memory was out. */
static int fail(TranscriptReader *reader, const char *where, char *what)
{
    reader->error = what ? format_text("entry %zu, %s: %s", reader->n + 1, where, what) : NULL;
    free(what);
    return reader->error ? -EINVAL : -ENOMEM;
}

/* Finishes the records of one part. Forwards `r`, and the message of the record reader. */
static int end_records(TranscriptReader *reader, const char *where, RecordReader *records, int r)
{
    char *error = TAKE_PTR(records->error);

    record_reader_done(records);
    if (r == -EINVAL && !reader->error)
        return fail(reader, where, error);
    free(error);
    return r;
}

static const char *take(TranscriptReader *reader, uint64_t n)
{
    const char *at = reader->at;

    if (n > (uint64_t)(reader->end - at))
        return NULL;
    reader->at += n;
    return at;
}

/* Whether this is another kind of file. After a mistaken file name, a message about a damaged record would
 * not help. */
static bool is_foreign(const TranscriptReader *reader)
{
    static const char begin[] = "plan ";
    size_t len = (size_t)(reader->end - reader->at);

    return reader->n == 0 && memcmp(reader->at, begin, MIN(len, strlen(begin))) != 0;
}

/* The last entry of a record whose writer was killed, or that was copied meanwhile. `entry` is where it begins. */
static int fail_torn(TranscriptReader *reader, const char *entry)
{
    static const char ends[] = "expected all bytes that the head announces, but the file ends";
    size_t whole = (size_t)(entry - reader->begin);

    return fail(reader, "head",
                whole > 0 ? format_text("%s; its first %zu bytes are whole (head -c %zu)", ends, whole, whole)
                          : strdup(ends));
}

static int read_head(TranscriptReader *reader, Entry *entry)
{
    const char *begin = reader->at, *newline = memchr(begin, '\n', (size_t)(reader->end - begin));
    size_t len = newline ? (size_t)(newline + 1 - begin) : 0;
    RecordReader records;
    int r;

    if (is_foreign(reader))
        return fail(reader, "head", strdup("not a record: expected a file written by --record="));
    if (!newline)
        return fail_torn(reader, begin);
    r = record_reader_init(&records, reader->at, len);
    if (r == 0)
        r = record_next(&records);
    if (r == 0 && (!records.kind || !record_is(&records, "plan")))
        r = record_expected(&records, "plan by_use=...");
    if (r == 0)
        r = READ(&records, head_fields, &entry->head);
    r = end_records(reader, "head", &records, r);
    if (r < 0)
        return r;
    reader->at += len;
    entry->policies = take(reader, entry->head.policies_bytes);
    entry->uses = entry->policies ? take(reader, entry->head.uses_bytes) : NULL;
    entry->world = entry->uses ? take(reader, entry->head.world_bytes) : NULL;
    entry->plan = entry->world ? take(reader, entry->head.plan_bytes) : NULL;
    return entry->plan ? 0 : fail_torn(reader, begin);
}

static int add_policy(TranscriptReader *reader, const PolicyRow *row, PolicySet *set)
{
    ConfReport report = {0};
    int r;

    if (!GROW(set->policies, set->capacity, set->n_policies + 1))
        return -ENOMEM;
    r = policy_parse(row->name, row->text, strlen(row->text), row->name, NULL,
                     &set->policies[set->n_policies], &report);
    if (r == 0)
        set->n_policies++;
    else if (r == -EBADMSG)
        r = fail(reader, "policies",
                 report.n_messages > 0 ? conf_message_format(&report.messages[0])
                                       : strdup("expected a policy"));
    conf_report_done(&report);
    return r;
}

static int read_policy_lines(TranscriptReader *reader, RecordReader *records, PolicySet *found)
{
    int r;

    while ((r = record_next(records)) == 0 && records->kind) {
        PolicyRow row = {0};

        r = record_is(records, "policy") ? READ(records, policy_fields, &row)
                                         : record_expected(records, "policy name=... text=...");
        if (r == 0 && (!row.name || !row.text || found->n_policies == POLICY_MAX))
            r = record_expected(records, "at most %u policies, each with a name and a text", POLICY_MAX);
        if (r == 0)
            r = add_policy(reader, &row, found);
        free(row.name);
        free(row.text);
        if (r < 0)
            return r;
    }
    return r;
}

/* Keeps the order of the policies, because the World names them by their index in the set. */
static int read_policies(TranscriptReader *reader, const Entry *entry)
{
    CLEANUP(policy_set_free_p) PolicySet *set = calloc(1, sizeof(*set));
    RecordReader records;
    int r;

    if (!set)
        return -ENOMEM;
    r = record_reader_init(&records, entry->policies, entry->head.policies_bytes);
    if (r == 0)
        r = read_policy_lines(reader, &records, set);
    r = end_records(reader, "policies", &records, r);
    if (r < 0)
        return r;
    policy_set_free(reader->policies);
    reader->policies = TAKE_PTR(set);
    return 0;
}

typedef struct Uses {
    PlanUse *list;
    size_t n, capacity;
    PlanRange *ranges; /* of all uses */
    size_t n_ranges, ranges_capacity;
} Uses;

static int read_range_line(RecordReader *records, const Topology *topology, Uses *uses)
{
    PlanRange *range;
    int r;

    if (uses->n == 0)
        return record_expected(records, "use before its ranges");
    if (!GROW(uses->ranges, uses->ranges_capacity, uses->n_ranges + 1))
        return -ENOMEM;
    range = &uses->ranges[uses->n_ranges++];
    uses->list[uses->n - 1].n_ranges++;
    r = READ(records, range_fields, range);
    if (r == 0 && (range->start >= range->end || range->to.i >= (int32_t)topology->n_nodes))
        r = record_expected(records, "a range that begins before its end, to a node of the topology or -1");
    return r;
}

static int read_use_line(RecordReader *records, const Topology *topology, Uses *uses)
{
    PlanUse *use;
    int r;

    if (!GROW(uses->list, uses->capacity, uses->n + 1))
        return -ENOMEM;
    use = &uses->list[uses->n++];
    *use = (PlanUse){0};
    r = READ(records, use_fields, use);
    if (r == 0 && (!use->from || !use->to || hwloc_bitmap_last(use->from) >= (int)topology->n_nodes ||
                   hwloc_bitmap_last(use->to) >= (int)topology->n_nodes))
        r = record_expected(records, "from= and to= nodes of the topology");
    return r;
}

static int read_use_lines(RecordReader *records, const Topology *topology, Uses *uses)
{
    int r;

    while ((r = record_next(records)) == 0 && records->kind) {
        if (record_is(records, "use"))
            r = read_use_line(records, topology, uses);
        else if (record_is(records, "range"))
            r = read_range_line(records, topology, uses);
        else
            r = record_expected(records, "use pid=... or range start=...");
        if (r < 0)
            return r;
    }
    return r;
}

static int read_uses(TranscriptReader *reader, const Entry *entry, const World *world, Uses *uses)
{
    RecordReader records;
    const PlanRange *next;
    int r = record_reader_init(&records, entry->uses, entry->head.uses_bytes);

    records.pool = world->pool;
    if (r == 0)
        r = read_use_lines(&records, world->topology, uses);
    r = end_records(reader, "uses", &records, r);
    next = uses->ranges;
    for (size_t i = 0; r == 0 && i < uses->n; i++) {
        uses->list[i].ranges = next;
        next += uses->list[i].n_ranges;
    }
    return r;
}

/* Whether every workload has a policy of the set. */
static bool fits(const World *world, const PolicySet *policies)
{
    for (size_t i = 0; i < world->n_workloads; i++)
        if (world->workloads[i].policy >= policies->n_policies)
            return false;
    return true;
}

static int plan_anew(TranscriptReader *reader, const Entry *entry, World *world, TranscriptPlan *ret)
{
    Plan plan = {0};
    Uses uses = {0};
    int r = read_uses(reader, entry, world, &uses);

    if (r == 0)
        r = entry->head.by_use
                ? plan_follow_use(world, reader->policies, &entry->head.limits, uses.list, uses.n, &plan)
                : plan_compute(world, reader->policies, &entry->head.limits, &plan);
    if (r == 0) {
        ret->now = plan_format(world, &plan);
        r = ret->now ? 0 : -ENOMEM;
    }
    plan_done(&plan);
    free(uses.list);
    free(uses.ranges);
    return r;
}

static int read_off(TranscriptReader *reader, char *off, uint64_t *ret_ablated)
{
    char *rest = NULL;

    *ret_ablated = 0;
    for (const char *name = strtok_r(off, " ", &rest); name; name = strtok_r(NULL, " ", &rest)) {
        int rule = ablation_find(name);

        if (rule < 0)
            return fail(reader, "head", format_text("expected names of rules in off=, not: %s", name));
        *ret_ablated |= 1ULL << rule;
    }
    return 0;
}

static int read_world(TranscriptReader *reader, Entry *entry, World **ret)
{
    CLEANUP(world_free_p) World *world = NULL;
    char *error = NULL;
    int r = 0;

    /* Old records have no text for an empty set. So no text means an empty set in the first entry, and the
     * policies of the entry before in others. */
    if (entry->head.policies_bytes > 0 || !reader->policies)
        r = read_policies(reader, entry);
    if (r < 0)
        return r;
    r = world_load(entry->world, entry->head.world_bytes, &world, &error);
    if (r < 0)
        return r == -EINVAL ? fail(reader, "World", error) : r;
    if (!fits(world, reader->policies))
        return fail(reader, "World", strdup("expected only workloads of the recorded policies"));
    r = read_off(reader, entry->head.off, &world->ablated);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(world);
    return 0;
}

/* Reads an entry except its uses. Returns 1, 0 at the end, or an error as read_head() and read_world(). */
static int read_entry(TranscriptReader *reader, Entry *ret_entry, World **ret_world, char **ret_plan)
{
    int r;

    if (reader->at == reader->end)
        return 0;
    r = read_head(reader, ret_entry);
    if (r == 0)
        r = read_world(reader, ret_entry, ret_world);
    if (r < 0)
        return r;
    *ret_plan = strndup(ret_entry->plan, ret_entry->head.plan_bytes);
    if (*ret_plan)
        return 1;
    *ret_world = world_free(*ret_world);
    return -ENOMEM;
}

int transcript_next(TranscriptReader *reader, TranscriptPlan *ret)
{
    CLEANUP(world_free_p) World *world = NULL;
    TranscriptPlan plan = {0};
    Entry entry = {0};
    int r = read_entry(reader, &entry, &world, &plan.recorded);

    if (r <= 0)
        return r;
    plan.tick = world->tick;
    plan.by_use = entry.head.by_use;
    r = plan_anew(reader, &entry, world, &plan);
    if (r < 0) {
        transcript_plan_done(&plan);
        return r;
    }
    reader->n++;
    *ret = plan;
    return 1;
}

int transcript_next_world(TranscriptReader *reader, World **ret_world, PlanLimits *ret_limits,
                          char **ret_plan)
{
    Entry entry = {0};
    int r = read_entry(reader, &entry, ret_world, ret_plan);

    if (r > 0) {
        *ret_limits = entry.head.limits;
        reader->n++;
    }
    return r;
}
