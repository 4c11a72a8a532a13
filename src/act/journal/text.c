/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A journal is read after a crash, perhaps of the disk's making, and decides about masks. So a line is taken
 * in whole or not at all, and must refer to a process that an earlier line introduced. A later line about the
 * same thing wins: a process managed a second time gets its new original that way. */

#include "act/journal/text.h"

#include "base/parse.h"
#include "base/record/record.h"

#include <string.h>

typedef struct Header {
    uint32_t version;
    char boot[64];
} Header;

static const RecordField header_fields[] = {
    {"version", RECORD_U32, offsetof(Header, version), .required = true},
    {"boot", RECORD_CHARS, offsetof(Header, boot), .required = true, .size = sizeof(((Header *)0)->boot)},
};

static const RecordField process_fields[] = {
    {"pid", RECORD_INDEX, offsetof(JournalProcess, pid), .required = true},
    {"start", RECORD_U64, offsetof(JournalProcess, start_ticks), .required = true},
    {"group", RECORD_INDEX, offsetof(JournalProcess, pgrp), .required = true},
    {"session", RECORD_INDEX, offsetof(JournalProcess, session), .required = true},
    {"place", RECORD_U64, offsetof(JournalProcess, place)},
    {"since", RECORD_U64, offsetof(JournalProcess, since_ticks)},
    {"original", RECORD_MASK, offsetof(JournalProcess, original.mask), .required = true},
    {"whole", RECORD_BOOL, offsetof(JournalProcess, original.whole), .required = true},
};

static const RecordField thread_fields[] = {
    {"pid", RECORD_INDEX, offsetof(JournalThread, pid), .required = true},
    {"start", RECORD_U64, offsetof(JournalThread, start_ticks), .required = true},
    {"tid", RECORD_INDEX, offsetof(JournalThread, tid), .required = true},
    {"born", RECORD_U64, offsetof(JournalThread, born_ticks), .required = true},
    {"original", RECORD_MASK, offsetof(JournalThread, original.mask), .required = true},
    {"whole", RECORD_BOOL, offsetof(JournalThread, original.whole), .required = true},
};

static const RecordField mask_fields[] = {
    {"pid", RECORD_INDEX, offsetof(JournalMask, pid), .required = true},
    {"start", RECORD_U64, offsetof(JournalMask, start_ticks), .required = true},
    {"mask", RECORD_MASK, offsetof(JournalMask, mask), .required = true},
};

static const RecordField passage_fields[] = {
    {"pid", RECORD_INDEX, offsetof(JournalPassage, pid), .required = true},
    {"start", RECORD_U64, offsetof(JournalPassage, start_ticks), .required = true},
    {"tid", RECORD_INDEX, offsetof(JournalPassage, tid), .required = true},
    {"born", RECORD_U64, offsetof(JournalPassage, born_ticks), .required = true},
    {"cpu", RECORD_INDEX, offsetof(JournalPassage, cpu), .required = true},
    {"ticks", RECORD_U64, offsetof(JournalPassage, before.ticks), .required = true},
    {"last", RECORD_INDEX, offsetof(JournalPassage, before.last), .required = true},
};

static const RecordField released_fields[] = {
    {"pid", RECORD_INDEX, offsetof(JournalProcess, pid), .required = true},
    {"start", RECORD_U64, offsetof(JournalProcess, start_ticks), .required = true},
    {"ticks", RECORD_U64, offsetof(JournalProcess, released_ticks), .required = true},
};

static const RecordField stranger_fields[] = {
    {"pid", RECORD_INDEX, offsetof(JournalStranger, pid), .required = true},
    {"start", RECORD_U64, offsetof(JournalStranger, start_ticks), .required = true},
};

static const char *const fence_names[] = {"none", "unit", "cgroup2", "cgroup1", "cpusetfs", NULL};

static_assert(ARRAY_SIZE(fence_names) == ACT_FENCE_MAX + 1, "one name per value");

static const RecordField fence_fields[] = {
    {"kind", RECORD_ENUM, offsetof(JournalFence, kind), .required = true, .names = fence_names},
    {"name", RECORD_STRING, offsetof(JournalFence, name), .required = true},
    {"path", RECORD_STRING, offsetof(JournalFence, path), .required = true},
    {"before", RECORD_MASK, offsetof(JournalFence, before), .required = true},
    {"memory", RECORD_BOOL, offsetof(JournalFence, memory)},
    {"dropin", RECORD_BOOL, offsetof(JournalFence, dropin)},
    {"inode", RECORD_U64, offsetof(JournalFence, inode)},
};

static const RecordField fenced_fields[] = {
    {"name", RECORD_STRING, offsetof(JournalFenced, name), .required = true},
    {"memory", RECORD_BOOL, offsetof(JournalFenced, memory)},
    {"cpus", RECORD_MASK, offsetof(JournalFenced, set), .required = true},
};

/* The fields of any line; zeroed before. */
typedef union Line {
    JournalProcess process; /* the largest */
    JournalThread thread;
    JournalMask mask;
    JournalPassage passage;
    JournalStranger stranger;
    JournalFence fence;
    JournalFenced fenced;
} Line;

/* Taking in: each takes the fields of one line. */

int journal_thread_compare(const JournalThread *a, const JournalThread *b)
{
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    if (a->tid != b->tid)
        return a->tid < b->tid ? -1 : 1;
    return (a->born_ticks > b->born_ticks) - (a->born_ticks < b->born_ticks);
}

static bool is_mask(CpuMask mask)
{
    return mask && !hwloc_bitmap_iszero(mask);
}

/* One by one: most processes get one or two masks in their life. */
int journal_add_mask(CpuMask **masks, uint32_t *n, CpuMask mask)
{
    CpuMask *grown;

    for (uint32_t i = 0; i < *n; i++)
        if ((*masks)[i] == mask)
            return 0;
    grown = realloc(*masks, (*n + 1) * sizeof(CpuMask));
    if (!grown)
        return -ENOMEM;
    *masks = grown;
    grown[(*n)++] = mask;
    return 0;
}

/* The process that a line refers to. */
static int find_process(Journal *journal, RecordReader *reader, pid_t pid, uint64_t start_ticks,
                        JournalProcess **ret)
{
    *ret = journal_process(journal, pid, start_ticks);
    return *ret ? 0
                : record_expected(reader, "a process line for process %d before the %s line", pid,
                                  reader->kind);
}

/* Forgets what the process had and got before it was released: its user may have chosen one of these masks since. */
static void forget_masks(Journal *journal, JournalProcess *process)
{
    size_t n = 0;

    process->n_applied = process->n_cut = 0;
    process->released_ticks = 0;
    for (size_t i = 0; i < journal->n_threads; i++)
        if (journal->threads[i].pid != process->pid ||
            journal->threads[i].start_ticks != process->start_ticks)
            journal->threads[n++] = journal->threads[i];
    journal->n_threads = n;
}

static int take_process(Journal *journal, RecordReader *reader, const Line *line)
{
    const JournalProcess *value = &line->process;
    JournalProcess *known = journal_process(journal, value->pid, value->start_ticks);
    size_t at = journal_first(journal, value->pid);

    if (value->pid <= 0 || !is_mask(value->original.mask))
        return record_expected(reader, "a PID and a non-empty CPU mask");
    if (known) {
        if (known->released_ticks > 0)
            forget_masks(journal, known);
        known->original = value->original;
        known->pgrp = value->pgrp;
        known->session = value->session;
        known->place = value->place;
        known->since_ticks = value->since_ticks;
        return 0;
    }
    while (at < journal->n_processes && journal->processes[at].pid == value->pid &&
           journal->processes[at].start_ticks < value->start_ticks)
        at++;
    if (!INSERT(journal->processes, journal->processes_capacity, journal->n_processes, at))
        return -ENOMEM;
    journal->processes[at] = *value;
    return 0;
}

static int take_thread(Journal *journal, RecordReader *reader, const Line *line)
{
    const JournalThread *value = &line->thread;
    JournalProcess *process;
    size_t at = journal->n_threads;
    int r = find_process(journal, reader, value->pid, value->start_ticks, &process);

    if (r < 0)
        return r;
    if (value->tid <= 0 || !is_mask(value->original.mask))
        return record_expected(reader, "a TID and a non-empty CPU mask");

    while (at > 0 && journal_thread_compare(&journal->threads[at - 1], value) >= 0)
        at--;
    if ((at == journal->n_threads || journal_thread_compare(&journal->threads[at], value) != 0) &&
        !INSERT(journal->threads, journal->threads_capacity, journal->n_threads, at))
        return -ENOMEM;
    journal->threads[at] = *value;
    return 0;
}

static int take_mask(Journal *journal, RecordReader *reader, const Line *line)
{
    const JournalMask *value = &line->mask;
    JournalProcess *process;
    int r = !is_mask(value->mask) ? record_expected(reader, "a non-empty CPU mask")
                                  : find_process(journal, reader, value->pid, value->start_ticks, &process);

    return r < 0 ? r : journal_add_mask(&process->applied, &process->n_applied, value->mask);
}

static int take_passage(Journal *journal, RecordReader *reader, const Line *line)
{
    const JournalPassage *value = &line->passage;
    JournalProcess *process;
    int r = find_process(journal, reader, value->pid, value->start_ticks, &process);

    if (r < 0)
        return r;
    if (value->tid <= 0 || value->cpu.i < 0 || value->before.last < 0)
        return record_expected(reader, "a TID, a CPU and the last PID");
    return APPEND(journal->passages, journal->passages_capacity, journal->n_passages, *value);
}

static int take_released(Journal *journal, RecordReader *reader, const Line *line)
{
    const JournalProcess *value = &line->process;
    JournalProcess *process;
    int r = find_process(journal, reader, value->pid, value->start_ticks, &process);

    if (r == 0 && value->released_ticks == 0)
        r = record_expected(reader, "ticks= of 1 or more");
    if (r == 0)
        process->released_ticks = value->released_ticks;
    return r;
}

static int take_stranger(Journal *journal, RecordReader *reader, const Line *line)
{
    return line->stranger.pid <= 0 ? record_expected(reader, "a PID")
                                   : journal_add_stranger(journal, line->stranger);
}

/* A cgroup's path or a unit's name: nothing that could lead elsewhere. */
static bool is_fence(const JournalFence *fence)
{
    return fence->kind != ACT_FENCE_NONE && fence->name && *fence->name && fence->path && fence->before &&
           *fence->path == '/' && !strstr(fence->path, "/..") &&
           (fence->kind == ACT_FENCE_UNIT ? !strchr(fence->name, '/')
                                          : strcmp(fence->name, fence->path) == 0);
}

static int take_fence(Journal *journal, RecordReader *reader, const Line *line)
{
    JournalFence value = line->fence, *known;

    if (!is_fence(&value))
        return record_expected(reader, "a kind, the name of a unit or cgroup, its path and CPUs");

    known = journal_fence(journal, value.name, value.memory);
    if (known) {
        if (known->inode == value.inode) {
            value.given = known->given;
            value.n_given = known->n_given;
        } else {
            free(known->given);
        }
        *known = value;
        return 0;
    }
    return APPEND(journal->fences, journal->fences_capacity, journal->n_fences, value);
}

/* The fence that a line refers to, or NULL with the reader's error set. */
static JournalFence *find_fence(Journal *journal, RecordReader *reader, const JournalFenced *value, int *ret)
{
    JournalFence *fence = value->name ? journal_fence(journal, value->name, value->memory) : NULL;

    *ret = fence ? 0 : record_expected(reader, "a fence line before the %s line", reader->kind);
    return fence;
}

static int take_fenced(Journal *journal, RecordReader *reader, const Line *line)
{
    int r;
    JournalFence *fence = find_fence(journal, reader, &line->fenced, &r);

    if (fence && !is_mask(line->fenced.set))
        return record_expected(reader, "a non-empty set");
    return fence ? journal_add_mask(&fence->given, &fence->n_given, line->fenced.set) : r;
}

static int take_unfenced(Journal *journal, RecordReader *reader, const Line *line)
{
    int r;
    JournalFence *fence = find_fence(journal, reader, &line->fenced, &r);

    if (!fence)
        return r;
    free(fence->given);
    *fence = journal->fences[--journal->n_fences];
    return 0;
}

void journal_drop_settled(Journal *journal)
{
    size_t n = 0;

    for (size_t i = 0; i < journal->n_passages; i++)
        if (!journal->passages[i].settled)
            journal->passages[n++] = journal->passages[i];
    journal->n_passages = n;
}

/* Lines without fields. */
static int take_word(Journal *journal, RecordReader *reader)
{
    int r;

    if (!record_is(reader, "settled") && !record_is(reader, "checked") && !record_is(reader, "kept") &&
        !record_is(reader, "unkept"))
        return record_expected(reader, "process, thread, mask, narrow, settled, checked, released, "
                                       "stranger, fence, fenced, unfenced, kept or unkept");

    r = record_read(reader, NULL, 0, NULL);
    if (r < 0)
        return r;
    journal->kept = record_is(reader, "kept");
    if (record_is(reader, "checked"))
        journal_drop_settled(journal);
    else if (record_is(reader, "settled") && journal->n_passages > 0)
        journal->passages[journal->n_passages - 1].settled = true;
    return 0;
}

typedef struct LineKind {
    const char *name;
    int (*take)(Journal *journal, RecordReader *reader, const Line *line);
    const RecordField *fields;
    size_t n;
} LineKind;

/* An "unfenced" line lacks the last field of a "fenced" line. */
static const LineKind lines[JOURNAL_LINE_MAX] = {
    [JOURNAL_LINE_PROCESS] = {"process", take_process, process_fields, ARRAY_SIZE(process_fields)},
    [JOURNAL_LINE_THREAD] = {"thread", take_thread, thread_fields, ARRAY_SIZE(thread_fields)},
    [JOURNAL_LINE_MASK] = {"mask", take_mask, mask_fields, ARRAY_SIZE(mask_fields)},
    [JOURNAL_LINE_PASSAGE] = {"narrow", take_passage, passage_fields, ARRAY_SIZE(passage_fields)},
    [JOURNAL_LINE_RELEASED] = {"released", take_released, released_fields, ARRAY_SIZE(released_fields)},
    [JOURNAL_LINE_STRANGER] = {"stranger", take_stranger, stranger_fields, ARRAY_SIZE(stranger_fields)},
    [JOURNAL_LINE_FENCE] = {"fence", take_fence, fence_fields, ARRAY_SIZE(fence_fields)},
    [JOURNAL_LINE_FENCED] = {"fenced", take_fenced, fenced_fields, ARRAY_SIZE(fenced_fields)},
    [JOURNAL_LINE_UNFENCED] = {"unfenced", take_unfenced, fenced_fields, ARRAY_SIZE(fenced_fields) - 1},
};

static int take_line(Journal *journal, RecordReader *reader)
{
    /* A daemon that continues to write has taken over. */
    journal->kept = false;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        if (record_is(reader, lines[i].name)) {
            Line line = {0};
            int r = record_read(reader, lines[i].fields, lines[i].n, &line);

            return r < 0 ? r : lines[i].take(journal, reader, &line);
        }
    return take_word(journal, reader);
}

int journal_text_take(Journal *journal, const char *text, size_t len)
{
    CLEANUP(record_reader_done) RecordReader reader = {0};
    int r = record_reader_init(&reader, text, len);

    reader.pool = journal->pool;
    while (r == 0) {
        r = record_next(&reader);
        if (r < 0 || !reader.kind)
            break;
        r = take_line(journal, &reader);
    }
    assert(r != -EINVAL);
    return r;
}

/* 0: this boot; 1: another boot; -EINVAL with the reader's error. */
static int take_header(Journal *journal, RecordReader *reader)
{
    Header header = {0};
    int r = record_next(reader);

    if (r < 0)
        return r;
    if (!record_is(reader, "journal"))
        return record_expected(reader, "\"journal version=%u boot=...\"", JOURNAL_VERSION);
    r = record_read(reader, header_fields, ARRAY_SIZE(header_fields), &header);
    if (r < 0)
        return r;
    if (header.version != JOURNAL_VERSION)
        return record_expected(reader, "version=%u, not %u", JOURNAL_VERSION, header.version);
    return strcmp(header.boot, journal->boot_id) != 0;
}

/* Keeps the reader's error if it is the first. */
static void remember(RecordReader *reader, char **ret_error)
{
    static const char prefix[] = "line ";

    if (*ret_error || !reader->error)
        return;
    *ret_error =
        strdup(reader->error + (strncmp(reader->error, prefix, strlen(prefix)) == 0 ? strlen(prefix) : 0));
}

/* The length of the whole lines. What follows was cut short by a crash. */
static size_t whole_lines(const char *text, size_t len)
{
    const char *end = len > 0 ? memrchr(text, '\n', len) : NULL;

    return end ? (size_t)(end - text) + 1 : 0;
}

/* A file without a whole line is the start of a header, or not ours. */
static bool is_torn_header(const char *text, size_t len)
{
    static const char start[] = "journal version=";

    return memcmp(text, start, MIN(len, strlen(start))) == 0;
}

int journal_parse(Journal *journal, const char *text, size_t len, size_t *ret_good, bool *ret_foreign,
                  char **ret_error)
{
    CLEANUP(record_reader_done) RecordReader reader = {0};
    size_t good = whole_lines(text, len);
    CLEANUP_FREE char *clean = malloc(good + 1);
    bool corrupt = false;
    int r;

    if (!clean)
        return -ENOMEM;
    if (good == 0 && !is_torn_header(text, len)) {
        *ret_error = strdup("1: expected \"journal version=1 boot=...\"");
        return ACT_E_CORRUPT;
    }
    /* The reader refuses a text with a NUL byte as a whole. Other unprintable bytes cost only their line. */
    for (size_t i = 0; i < good; i++)
        clean[i] = text[i] ? text[i] : '\x01';

    r = record_reader_init(&reader, clean, good);
    reader.pool = journal->pool;
    if (r == 0 && good > 0)
        r = take_header(journal, &reader);
    *ret_good = good;
    *ret_foreign = r > 0;
    if (r > 0)
        return 0;

    for (;;) {
        if (r == -EINVAL) {
            corrupt = true;
            remember(&reader, ret_error);
        } else if (r < 0) {
            return r;
        }
        r = good > 0 ? record_next(&reader) : 0;
        if (r == 0 && !reader.kind)
            break;
        if (r == 0)
            r = take_line(journal, &reader);
    }
    journal->n_lines = reader.line;
    return corrupt ? ACT_E_CORRUPT : 0;
}

/* Writing */

void journal_text_write(FILE *out, JournalLine line, const void *value)
{
    record_write(out, lines[line].name, lines[line].fields, lines[line].n, value);
}

static int print_all(FILE *out, const void *object)
{
    const Journal *journal = object;
    Header header = {.version = JOURNAL_VERSION};

    (void)snprintf(header.boot, sizeof(header.boot), "%s", journal->boot_id);
    record_write(out, "journal", header_fields, ARRAY_SIZE(header_fields), &header);
    for (size_t i = 0; i < journal->n_processes; i++) {
        const JournalProcess *p = &journal->processes[i];

        journal_text_write(out, JOURNAL_LINE_PROCESS, p);
        for (size_t k = 0; k < p->n_applied; k++)
            journal_text_write(out, JOURNAL_LINE_MASK, &(JournalMask){p->pid, p->start_ticks, p->applied[k]});
        if (p->released_ticks > 0)
            journal_text_write(out, JOURNAL_LINE_RELEASED, p);
    }
    for (size_t i = 0; i < journal->n_threads; i++)
        journal_text_write(out, JOURNAL_LINE_THREAD, &journal->threads[i]);
    for (size_t i = 0; i < journal->n_passages; i++) {
        journal_text_write(out, JOURNAL_LINE_PASSAGE, &journal->passages[i]);
        if (journal->passages[i].settled)
            (void)fputs("settled\n", out);
    }
    for (size_t i = 0; i < journal->n_strangers; i++)
        journal_text_write(out, JOURNAL_LINE_STRANGER, &journal->strangers[i]);
    for (size_t i = 0; i < journal->n_fences; i++) {
        const JournalFence *fence = &journal->fences[i];

        journal_text_write(out, JOURNAL_LINE_FENCE, fence);
        for (size_t k = 0; k < fence->n_given; k++)
            journal_text_write(out, JOURNAL_LINE_FENCED,
                               &(JournalFenced){fence->name, fence->memory, fence->given[k]});
    }
    if (journal->kept)
        (void)fputs("kept\n", out);
    return 0;
}

char *journal_format(const Journal *journal, size_t *ret_len)
{
    return format_printed(print_all, journal, ret_len);
}
