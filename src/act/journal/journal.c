/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* An index in memory holds what the file holds, so moving ten thousand threads of a process to one home costs
 * two lines. It is sorted arrays: PIDs mostly rise, so an insertion is nearly always an append, and a hash
 * handle would be as large as the entry.
 *
 * The index is never ahead of the file: a line is written first, and taken in if that worked. */

#include "act/journal/journal.h"

#include "act/journal/text.h"
#include "base/parse.h"
#include "base/root.h"

#include <stdio.h>
#include <string.h>

/* Growth before a compaction pays; a line is about 60 bytes. */
#define LINES_SPARE     4096U
#define PROCESSES_SPARE 1024U

static int read_boot_id(int root_fd, char **ret, char **ret_error)
{
    static const char path[] = "proc/sys/kernel/random/boot_id";
    char text[64];
    ssize_t n = root_read(root_fd, path, text, sizeof(text));

    if (n < 0)
        return format_error(ret_error, (int)n, "/%s: cannot be read: %s", path, strerror((int)-n));
    text[strcspn(text, "\n")] = '\0';
    *ret = strdup(text);
    return *ret ? 0 : -ENOMEM;
}

/* Makes a journal with its file open and nothing taken in yet. */
static int journal_new(const char *path, int root_fd, bool change, Journal **ret, char **ret_error)
{
    CLEANUP(journal_free_p) Journal *journal = calloc(1, sizeof(*journal));
    int r;

    *ret_error = NULL;
    if (!journal)
        return -ENOMEM;
    journal->file = JOURNAL_FILE_NULL;
    journal->pool = intern_pool_new();
    if (!journal->pool)
        return -ENOMEM;
    r = read_boot_id(root_fd, &journal->boot_id, ret_error);
    if (r == 0)
        r = journal_file_open(path, change, &journal->file, ret_error);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(journal);
    return 0;
}

/* Writes the whole index as a new file. */
static int write_anew(Journal *journal, bool keep)
{
    CLEANUP_FREE char *text = NULL;
    size_t len = 0;
    int r;

    text = journal_format(journal, &len);
    if (!text)
        return -ENOMEM;
    r = journal_file_replace(&journal->file, text, len, keep);
    if (r < 0)
        return r;
    journal->n_lines = 1;
    for (const char *p = text; *p; p++)
        journal->n_lines += *p == '\n';
    journal->n_kept = journal->n_processes;
    return 0;
}

/* Takes in the file, and leaves one that can be appended to. */
static int load(Journal *journal, char **ret_error)
{
    CLEANUP_FREE char *text = NULL, *what = NULL;
    bool more = false, foreign = false;
    size_t len = 0, good = 0;
    int r, q;

    r = journal_file_read(&journal->file, &text, &len, &more);
    if (r < 0)
        return r;
    r = journal_parse(journal, text, len, &good, &foreign, &what);
    if (r < 0)
        return r;
    if (r == 0 && more) {
        r = ACT_E_CORRUPT;
        what = format_text("%zu: expected at most %lu bytes", journal->n_lines, JOURNAL_FILE_MAX);
    }
    journal->torn = r == 0 && good < len;

    if (r == ACT_E_CORRUPT) {
        *ret_error = format_text("%s:%s", journal->file.path, what ? what : "expected a journal");
        /* On a full disk the damaged file stays, and is found again. */
        (void)write_anew(journal, true);
        return r;
    }
    q = foreign || good == 0 ? write_anew(journal, false) : 0;
    if (q < 0)
        *ret_error = format_text("%s: cannot be written: %s", journal->file.path, strerror(-q));
    if (q == 0 && good > 0 && !foreign) {
        journal->file.length = (off_t)good;
        journal->file.tail = good < len;
        journal->n_kept = journal->n_processes;
    }
    return q;
}

int journal_open(const char *path, int root_fd, Journal **ret, char **ret_error)
{
    CLEANUP(journal_free_p) Journal *journal = NULL;
    int r = journal_new(path, root_fd, true, &journal, ret_error);

    if (r < 0)
        return r;
    r = load(journal, ret_error);
    if (r < 0 && r != -ENOMEM && !*ret_error)
        *ret_error = format_text("%s: cannot be read: %s", path, strerror(-r));
    if (r < 0)
        return r;
    *ret = TAKE_PTR(journal);
    return r;
}

/* Takes in the file. One of another boot has no entries. */
static int load_reading(Journal *journal)
{
    CLEANUP_FREE char *text = NULL, *what = NULL;
    size_t len = 0, good = 0;
    bool more, foreign;
    int r = journal_file_read(&journal->file, &text, &len, &more);

    if (r == 0)
        r = journal_parse(journal, text, len, &good, &foreign, &what);
    return MIN(r, 0);
}

int journal_open_reading(const char *path, int root_fd, Journal **ret, char **ret_error)
{
    CLEANUP(journal_free_p) Journal *journal = NULL;
    int r = journal_new(path, root_fd, false, &journal, ret_error);

    if (r == 0)
        r = load_reading(journal);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(journal);
    return 0;
}

static void free_masks(JournalProcess *process)
{
    free(process->applied);
    free(process->cut);
}

Journal *journal_free(Journal *journal)
{
    if (!journal)
        return NULL;
    for (size_t i = 0; i < journal->n_processes; i++)
        free_masks(&journal->processes[i]);
    free(journal->processes);
    free(journal->threads);
    free(journal->passages);
    free(journal->strangers);
    for (size_t i = 0; i < journal->n_fences; i++)
        free(journal->fences[i].given);
    free(journal->fences);
    intern_pool_free(journal->pool);
    free(journal->boot_id);
    journal_file_done(&journal->file);
    free(journal);
    return NULL;
}

/* Appends whole lines. */
static int append(Journal *journal, const char *text, size_t len)
{
    int r = journal_file_is_lost(&journal->file) ? write_anew(journal, false) : 0;

    if (r == 0)
        r = journal_file_append(&journal->file, text, len);
    if (r < 0)
        return r;
    for (size_t i = 0; i < len; i++)
        journal->n_lines += text[i] == '\n';
    return 0;
}

/* Appends lines, then takes them in by parsing them: so the index holds what a later process will read. 0,
 * -ENOMEM, or another -errno if they cannot be appended. */
static int note_text(Journal *journal, const char *text, size_t len)
{
    int r = len > 0 ? append(journal, text, len) : 0;

    return r < 0 || len == 0 ? r : MIN(journal_text_take(journal, text, len), 0);
}

/* The same for what `print` writes of an object. */
static int note_printed(Journal *journal, int (*print)(FILE *out, const void *object), const void *object)
{
    size_t len = 0;
    CLEANUP_FREE char *text = format_printed(print, object, &len);

    return text ? note_text(journal, text, len) : -ENOMEM;
}

typedef struct Note {
    JournalLine line;
    const void *value;
} Note;

static int print_note(FILE *out, const void *object)
{
    const Note *note = object;

    journal_text_write(out, note->line, note->value);
    return 0;
}

static int note(Journal *journal, JournalLine line, const void *value)
{
    return note_printed(journal, print_note, &(Note){line, value});
}

bool journal_is_applied(const JournalProcess *process, hwloc_const_bitmap_t mask)
{
    for (size_t i = 0; i < process->n_applied; i++)
        if (hwloc_bitmap_isequal(process->applied[i], mask))
            return true;
    return false;
}

static bool same_original(JournalOriginal a, JournalOriginal b)
{
    return a.whole == b.whole && hwloc_bitmap_isequal(a.mask, b.mask);
}

static void write_thread(FILE *out, const JournalChange *change, TaskKey task, JournalOriginal original)
{
    const JournalThread thread = {
        .pid = change->process.pid,
        .tid = task.tid,
        .start_ticks = change->process.start_ticks,
        .born_ticks = task.start_ticks,
        .original = original,
    };

    journal_text_write(out, JOURNAL_LINE_THREAD, &thread);
}

typedef struct Change {
    const Journal *journal;
    const JournalChange *change;
} Change;

/* Prints the lines that this change lacks. */
static int print_change(FILE *out, const void *object)
{
    const Journal *journal = ((const Change *)object)->journal;
    const JournalChange *change = ((const Change *)object)->change;
    const ActProcess *p = &change->process;
    const JournalProcess *process = journal_process(journal, p->pid, p->start_ticks);
    const JournalOriginal own = {.mask = change->mask};

    /* What it had and got before it was released counts no more. */
    if (process && process->released_ticks > 0 && !change->ours)
        process = NULL;
    if (!process)
        journal_text_write(out, JOURNAL_LINE_PROCESS,
                           &(JournalProcess){
                               .pid = p->pid,
                               .pgrp = p->pgrp,
                               .session = p->session,
                               .start_ticks = p->start_ticks,
                               .place = change->place,
                               .since_ticks = change->since_ticks,
                               .original = change->original,
                           });
    /* Also if the thread was managed before with another original. */
    if (process && !change->ours &&
        !same_original(journal_original(journal, process, change->task), change->original))
        write_thread(out, change, change->task, change->original);
    /* A thread that has the mask could not be told from one that gets it. */
    for (size_t i = 0; i < change->n_own; i++)
        if (!process || !same_original(journal_original(journal, process, change->own[i]), own))
            write_thread(out, change, change->own[i], own);
    if (!process || !journal_is_applied(process, change->mask))
        journal_text_write(out, JOURNAL_LINE_MASK, &(JournalMask){p->pid, p->start_ticks, change->mask});
    if (change->passage)
        journal_text_write(out, JOURNAL_LINE_PASSAGE, change->passage);
    return 0;
}

int journal_note_change(Journal *journal, const JournalChange *change)
{
    return note_printed(journal, print_change, &(Change){journal, change});
}

int journal_note_settled(Journal *journal)
{
    return note_text(journal, "settled\n", strlen("settled\n"));
}

int journal_note_checked(Journal *journal)
{
    return note_text(journal, "checked\n", strlen("checked\n"));
}

int journal_note_released(Journal *journal, JournalProcess *process, uint64_t ticks)
{
    JournalProcess released = *process;

    released.released_ticks = MAX(ticks, 1U);
    return note(journal, JOURNAL_LINE_RELEASED, &released);
}

static bool is_before(const JournalStranger *s, pid_t pid, uint64_t start_ticks)
{
    return s->pid < pid || (s->pid == pid && s->start_ticks < start_ticks);
}

/* The index of the first stranger not before this one. */
static size_t first_stranger(const Journal *journal, pid_t pid, uint64_t start_ticks)
{
    return LOWER_BOUND(i, journal->n_strangers, is_before(&journal->strangers[i], pid, start_ticks));
}

static bool has_stranger(const Journal *journal, pid_t pid, uint64_t start_ticks)
{
    size_t at = first_stranger(journal, pid, start_ticks);

    return at < journal->n_strangers && journal->strangers[at].pid == pid &&
           journal->strangers[at].start_ticks == start_ticks;
}

bool journal_is_stranger(const Journal *journal, pid_t pid, uint64_t start_ticks)
{
    return has_stranger(journal, pid, start_ticks) && !journal_process(journal, pid, start_ticks);
}

int journal_add_stranger(Journal *journal, JournalStranger stranger)
{
    size_t at = first_stranger(journal, stranger.pid, stranger.start_ticks);

    if (has_stranger(journal, stranger.pid, stranger.start_ticks) ||
        journal->n_strangers >= JOURNAL_STRANGERS_MAX)
        return 0;
    if (!INSERT(journal->strangers, journal->strangers_capacity, journal->n_strangers, at))
        return -ENOMEM;
    journal->strangers[at] = stranger;
    return 0;
}

int journal_note_stranger(Journal *journal, pid_t pid, uint64_t start_ticks)
{
    const JournalStranger stranger = {.pid = pid, .start_ticks = start_ticks};

    if (has_stranger(journal, pid, start_ticks) || journal->n_strangers >= JOURNAL_STRANGERS_MAX)
        return 0;
    return note(journal, JOURNAL_LINE_STRANGER, &stranger);
}

JournalFence *journal_fence(const Journal *journal, const char *name, bool memory)
{
    for (size_t i = 0; i < journal->n_fences; i++)
        if (journal->fences[i].memory == memory && strcmp(journal->fences[i].name, name) == 0)
            return &journal->fences[i];
    return NULL;
}

int journal_note_fence(Journal *journal, const JournalFence *fence)
{
    const JournalFence *known = journal_fence(journal, fence->name, fence->memory);

    if (known && known->kind == fence->kind && strcmp(known->path, fence->path) == 0 &&
        known->dropin == fence->dropin && known->inode == fence->inode &&
        hwloc_bitmap_isequal(known->before, fence->before))
        return 0;
    return note(journal, JOURNAL_LINE_FENCE, fence);
}

int journal_note_fenced(Journal *journal, const char *name, bool memory, hwloc_const_bitmap_t set)
{
    const JournalFence *known = journal_fence(journal, name, memory);

    assert(known);
    for (uint32_t i = 0; i < known->n_given; i++)
        if (hwloc_bitmap_isequal(known->given[i], set))
            return 0;
    return note(journal, JOURNAL_LINE_FENCED, &(JournalFenced){name, memory, set});
}

int journal_note_unfenced(Journal *journal, const char *name, bool memory)
{
    if (!journal_fence(journal, name, memory))
        return 0;
    return note(journal, JOURNAL_LINE_UNFENCED, &(JournalFenced){name, memory});
}

int journal_note_kept(Journal *journal, bool kept)
{
    const char *line = kept ? "kept\n" : "unkept\n";

    return journal->kept == kept ? 0 : note_text(journal, line, strlen(line));
}

size_t journal_first(const Journal *journal, pid_t pid)
{
    return LOWER_BOUND(i, journal->n_processes, journal->processes[i].pid < pid);
}

JournalProcess *journal_process(const Journal *journal, pid_t pid, uint64_t start_ticks)
{
    for (size_t i = journal_first(journal, pid); i < journal->n_processes; i++) {
        JournalProcess *process = &journal->processes[i];

        if (process->pid != pid)
            break;
        if (process->start_ticks == start_ticks)
            return process;
    }
    return NULL;
}

JournalOriginal journal_original(const Journal *journal, const JournalProcess *process, TaskKey task)
{
    const JournalThread key = {.pid = process->pid, .tid = task.tid, .born_ticks = task.start_ticks};
    size_t at = LOWER_BOUND(i, journal->n_threads, journal_thread_compare(&journal->threads[i], &key) < 0);

    return at < journal->n_threads && journal_thread_compare(&journal->threads[at], &key) == 0
               ? journal->threads[at].original
               : process->original;
}

bool journal_bloated(const Journal *journal)
{
    return journal->n_processes > 2 * journal->n_kept + PROCESSES_SPARE ||
           journal->n_lines > 4 * (journal->n_kept + journal->n_threads) + LINES_SPARE;
}

/* Compaction */

static bool is_living(const ActProcess *living, size_t n, pid_t pid, uint64_t start_ticks)
{
    size_t at = LOWER_BOUND(i, n, living[i].pid < pid);

    return at < n && living[at].pid == pid && living[at].start_ticks == start_ticks;
}

/* Drops what is useless. A thread's line goes with its process, even if the thread ended earlier: such lines
 * are few. */
static void drop_dead(Journal *journal, const ActProcess *living, size_t n)
{
    size_t kept = 0, threads = 0, passages = 0, strangers = 0;

    for (size_t i = 0; i < journal->n_processes; i++) {
        JournalProcess *process = &journal->processes[i];

        if (process->released_ticks == 0 && is_living(living, n, process->pid, process->start_ticks))
            journal->processes[kept++] = *process;
        else
            free_masks(process);
    }
    journal->n_processes = kept;

    for (size_t i = 0; i < journal->n_threads; i++) {
        if (journal_process(journal, journal->threads[i].pid, journal->threads[i].start_ticks))
            journal->threads[threads++] = journal->threads[i];
    }
    journal->n_threads = threads;
    for (size_t i = 0; i < journal->n_passages; i++)
        if (journal_process(journal, journal->passages[i].pid, journal->passages[i].start_ticks))
            journal->passages[passages++] = journal->passages[i];
    journal->n_passages = passages;
    for (size_t i = 0; i < journal->n_strangers; i++)
        if (is_living(living, n, journal->strangers[i].pid, journal->strangers[i].start_ticks))
            journal->strangers[strangers++] = journal->strangers[i];
    journal->n_strangers = strangers;

    intern_pool_begin(journal->pool);
    for (size_t i = 0; i < kept; i++) {
        intern_mark_mask(journal->pool, journal->processes[i].original.mask);
        intern_mark_mask(journal->pool, journal->processes[i].cpuset);
        intern_mark_mask(journal->pool, journal->processes[i].left);
        intern_mark_string(journal->pool, journal->processes[i].workload);
        for (size_t k = 0; k < journal->processes[i].n_applied; k++)
            intern_mark_mask(journal->pool, journal->processes[i].applied[k]);
    }
    for (size_t i = 0; i < threads; i++)
        intern_mark_mask(journal->pool, journal->threads[i].original.mask);
    for (size_t i = 0; i < journal->n_fences; i++) {
        const JournalFence *fence = &journal->fences[i];

        intern_mark_string(journal->pool, fence->name);
        intern_mark_string(journal->pool, fence->path);
        intern_mark_mask(journal->pool, fence->before);
        for (size_t k = 0; k < fence->n_given; k++)
            intern_mark_mask(journal->pool, fence->given[k]);
    }
    intern_pool_sweep(journal->pool);
}

int journal_compact(Journal *journal, const ActProcess *living, size_t n)
{
    drop_dead(journal, living, n);
    return write_anew(journal, false);
}

/* A full disk must not preserve this: a user may choose a mask that was ours. */
int journal_clear(Journal *journal)
{
    CLEANUP_FREE char *header = NULL;
    size_t len = 0;
    int r;

    while (journal->n_fences > 0)
        free(journal->fences[--journal->n_fences].given);
    journal->kept = false;
    r = journal_compact(journal, NULL, 0);
    if (r == 0)
        return 0;
    header = journal_format(journal, &len);
    return header && journal_file_cut(&journal->file, header, len) == 0 ? 0 : r;
}
