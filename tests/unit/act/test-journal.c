/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The journal file: which file is trusted, and how a damaged one is handled. */

#include "fixture.h"

#include "../temp-tree.h"
#include "act/journal/journal.h"
#include "base/root.h"

#include <fcntl.h>

#define BOOT   "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"
#define HEADER "journal version=1 boot=\"" BOOT "\"\n"
#define BODY                                                                                                         \
    "process pid=100 start=1000 group=100 session=90 place=1 since=1005 original=0-7 whole=yes\n"                    \
    "mask pid=100 start=1000 mask=0-3\n"                                                                             \
    "mask pid=100 start=1000 mask=0-3,5\n"                                                                           \
    "process pid=200 start=1000 group=-1 session=0 place=0 since=0 original=1,3 whole=no\n"                          \
    "mask pid=200 start=1000 mask=0-3\n"                                                                             \
    "released pid=200 start=1000 ticks=77\n"                                                                         \
    "process pid=200 start=1500 group=200 session=200 place=18446744073709551615 since=1501 original=0-7 whole=no\n" \
    "thread pid=100 start=1000 tid=101 born=1001 original=2 whole=no\n"                                              \
    "narrow pid=100 start=1000 tid=100 born=1000 cpu=5 ticks=1010 last=4000\n"                                       \
    "settled\n"                                                                                                      \
    "narrow pid=100 start=1000 tid=101 born=1001 cpu=6 ticks=1011 last=4001\n"                                       \
    "stranger pid=50 start=900\n"                                                                                    \
    "stranger pid=300 start=1600\n"

/* A root directory with a boot id. */
static int setup(void **state)
{
    Fixture *f = fixture_new(state);

    (void)test_write(f->directory, "proc/sys/kernel/random/boot_id", BOOT "\n");
    (void)close(f->root_fd);
    f->root_fd = open(f->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return f->root_fd < 0 ? -1 : 0;
}

static int open_journal(Fixture *f, Journal **ret, char **ret_error)
{
    *ret = NULL;
    *ret_error = NULL;
    return journal_open(f->journal, f->root_fd, ret, ret_error);
}

static void assert_file(const Fixture *f, const char *name, const char *expected)
{
    CLEANUP_FREE char *text = NULL;
    size_t len;

    assert_int_equal(root_read_alloc(f->root_fd, name, 8192, &text, &len), 0);
    assert_string_equal(text, expected);
}

static void assert_no_file(const Fixture *f, const char *name)
{
    assert_int_equal(faccessat(f->root_fd, name, F_OK, 0), -1);
}

static void test_new(void **state)
{
    Fixture *f = *state;
    CLEANUP(journal_free_p) Journal *journal = NULL;
    CLEANUP_FREE char *error = NULL;
    struct stat st;

    assert_int_equal(open_journal(f, &journal, &error), 0);
    assert_file(f, "journal", HEADER);
    assert_int_equal(stat(f->journal, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(journal->n_processes, 0);
}

static void test_round_trip(void **state)
{
    Fixture *f = *state;
    CLEANUP(journal_free_p) Journal *journal = NULL;
    CLEANUP_FREE char *error = NULL, *text = NULL;
    JournalProcess *p;
    size_t len;

    fixture_write_journal(f, HEADER BODY, strlen(HEADER BODY));
    assert_int_equal(open_journal(f, &journal, &error), 0);
    assert_int_equal(journal->n_processes, 3);
    p = journal_process(journal, 100, 1000);
    assert_non_null(p);
    assert_int_equal(p->session, 90);
    assert_int_equal(p->n_applied, 2);
    assert_true(p->original.whole);
    assert_int_equal(
        hwloc_bitmap_first(
            journal_original(journal, p, (TaskKey){.pid = 100, .tid = 101, .start_ticks = 1001}).mask),
        2);
    assert_ptr_equal(journal_original(journal, p, (TaskKey){.pid = 100, .tid = 101, .start_ticks = 9}).mask,
                     p->original.mask);
    assert_null(journal_process(journal, 100, 1001));
    assert_int_equal(journal_process(journal, 200, 1000)->released_ticks, 77);
    assert_int_equal(journal_process(journal, 200, 1500)->released_ticks, 0);
    assert_int_equal(journal->n_passages, 2);

    text = journal_format(journal, &len);
    assert_string_equal(text, HEADER BODY);
    assert_int_equal(len, strlen(text));
    assert_file(f, "journal", HEADER BODY); /* reading changes nothing */
}

static void test_later_lines_win(void **state)
{
    Fixture *f = *state;
    CLEANUP(journal_free_p) Journal *journal = NULL;
    CLEANUP_FREE char *error = NULL;
    static const char text[] =
        HEADER BODY "process pid=200 start=1000 group=1 session=1 original=4 whole=no\n"
                    "thread pid=100 start=1000 tid=101 born=1001 original=3 whole=no\n"
                    "checked\n";

    fixture_write_journal(f, text, strlen(text));
    assert_int_equal(open_journal(f, &journal, &error), 0);
    assert_int_equal(journal_process(journal, 200, 1000)->released_ticks, 0);
    assert_int_equal(hwloc_bitmap_first(journal_process(journal, 200, 1000)->original.mask), 4);
    assert_int_equal(journal->n_threads, 1);
    assert_int_equal(hwloc_bitmap_first(journal->threads[0].original.mask), 3);
    assert_int_equal(journal->n_passages, 1); /* the one that is not settled */
    assert_int_equal(journal->passages[0].tid, 101);
}

static void test_torn(void **state)
{
    Fixture *f = *state;
    CLEANUP_FREE char *error = NULL;

    /* Cut anywhere, it is read up to the last whole line, and appended to from there. */
    for (size_t cut = 0; cut <= strlen(HEADER BODY); cut++) {
        CLEANUP(journal_free_p) Journal *journal = NULL;
        const char *end = cut > 0 ? memrchr(HEADER BODY, '\n', cut) : NULL;
        size_t good = end ? (size_t)(end - (HEADER BODY)) + 1 : 0;
        CLEANUP_FREE char *expected = NULL;

        fixture_write_journal(f, HEADER BODY, cut);
        assert_int_equal(open_journal(f, &journal, &error), 0);
        assert_int_equal(journal->torn, good < cut);
        assert_int_equal(journal_note_checked(journal), 0);
        assert_true(asprintf(&expected, "%.*schecked\n", (int)(good ? good : strlen(HEADER)), HEADER BODY) >
                    0);
        assert_file(f, "journal", expected);
        assert_no_file(f, "journal.corrupt");
    }
}

static void assert_corrupt(Fixture *f, const char *text, size_t len, const char *sentence, size_t n_processes)
{
    CLEANUP(journal_free_p) Journal *journal = NULL;
    CLEANUP_FREE char *error = NULL, *expected = NULL;
    struct stat st;

    fixture_write_journal(f, text, len);
    assert_int_equal(open_journal(f, &journal, &error), ACT_E_CORRUPT);
    assert_true(asprintf(&expected, "%s:%s", f->journal, sentence) > 0);
    assert_string_equal(error, expected);
    assert_int_equal(journal->n_processes, n_processes);
    assert_int_equal(fstatat(f->root_fd, "journal.corrupt", &st, 0), 0);
    assert_int_equal(st.st_size, len);

    /* The new file has what could be read, so the next start is an ordinary one. */
    journal = journal_free(journal);
    free(error);
    assert_int_equal(open_journal(f, &journal, &error), 0);
    assert_int_equal(journal->n_processes, n_processes);
}

static void test_corrupt(void **state)
{
    Fixture *f = *state;

#define CORRUPT(text, sentence, n) assert_corrupt(f, text, sizeof(text) - 1, sentence, n)
    CORRUPT(
        HEADER "hello\n" BODY,
        "2: expected process, thread, mask, narrow, settled, checked, released, stranger, fence, fenced, unfenced, "
        "kept or unkept",
        3);
    CORRUPT(BODY, "1: expected \"journal version=1 boot=...\"", 2);
    CORRUPT("journal version=2 boot=\"" BOOT "\"\n" BODY, "1: expected version=1, not 2", 3);
    CORRUPT(HEADER "mask pid=5 start=1 mask=0\n" BODY,
            "2: expected a process line for process 5 before the mask line", 3);
    CORRUPT(HEADER BODY "mask pid=100 start=1000 mask=empty\n", "15: expected a non-empty CPU mask", 3);
    CORRUPT(HEADER BODY "released pid=100 start=1000 ticks=0\n", "15: expected ticks= of 1 or more", 3);
    CORRUPT("\177ELF\2\1\1", "1: expected \"journal version=1 boot=...\"", 0);
    CORRUPT(HEADER "process pid=0 start=1 group=1 session=1 original=1 whole=no\n",
            "2: expected a PID and a non-empty CPU mask", 0);
#define BAD_FENCE "2: expected a kind, the name of a unit or cgroup, its path and CPUs"
    CORRUPT(HEADER "fence kind=none name=\"a\" path=\"/a\" before=empty\n", BAD_FENCE, 0);
    CORRUPT(HEADER "fence kind=unit name=\"../a\" path=\"/a\" before=empty\n", BAD_FENCE, 0);
    CORRUPT(HEADER "fence kind=cgroup2 name=\"/b\" path=\"/a\" before=empty\n", BAD_FENCE, 0);
    CORRUPT(HEADER "fence kind=cgroup1 name=\"/../a\" path=\"/../a\" before=1\n", BAD_FENCE, 0);
    CORRUPT(HEADER "fenced name=\"a\" cpus=1\n", "2: expected a fence line before the fenced line", 0);
    CORRUPT(HEADER "unfenced name=\"a\"\n", "2: expected a fence line before the unfenced line", 0);
    CORRUPT(HEADER "fence kind=unit name=\"a\" path=\"/a\" before=1\nfenced name=\"a\" cpus=empty\n",
            "3: expected a non-empty set", 0);
#undef BAD_FENCE
#undef CORRUPT
}

/* A fence that is noted is in the file, is read again, and survives a compaction. */
static void test_fences(void **state)
{
    Fixture *f = *state;
    CLEANUP(journal_free_p) Journal *journal = NULL;
    CLEANUP_FREE char *error = NULL;
    static const char text[] = HEADER
        "fence kind=unit name=\"x.service\" path=\"/s.slice/x.service\" before=empty memory=no dropin=yes inode=0\n"
        "fenced name=\"x.service\" memory=no cpus=0-3\n"
        "fenced name=\"x.service\" memory=no cpus=4-7\n"
        "fence kind=unit name=\"x.service\" path=\"/s.slice/x.service\" before=0-1 memory=yes dropin=no inode=0\n"
        "fenced name=\"x.service\" memory=yes cpus=1\n";
    JournalFence cpus = {
        .kind = ACT_FENCE_UNIT,
        .name = "x.service",
        .path = "/s.slice/x.service",
        .before = fixture_mask(f, ""),
        .dropin = true,
    };
    JournalFence memory = cpus;

    assert_int_equal(open_journal(f, &journal, &error), 0);
    memory.memory = true;
    memory.dropin = false;
    memory.before = fixture_mask(f, "0-1");
    for (unsigned i = 0; i < 2; i++) { /* the second round adds no lines */
        assert_int_equal(journal_note_fence(journal, &cpus), 0);
        assert_int_equal(journal_note_fenced(journal, "x.service", false, fixture_mask(f, "0-3")), 0);
        assert_int_equal(journal_note_fenced(journal, "x.service", false, fixture_mask(f, "4-7")), 0);
        assert_int_equal(journal_note_fence(journal, &memory), 0);
        assert_int_equal(journal_note_fenced(journal, "x.service", true, fixture_mask(f, "1")), 0);
    }
    assert_file(f, "journal", text);
    journal = journal_free(journal);
    assert_int_equal(open_journal(f, &journal, &error), 0);
    assert_int_equal(journal_compact(journal, NULL, 0), 0);
    assert_file(f, "journal", text);
    assert_int_equal(journal_fence(journal, "x.service", false)->n_given, 2);
    assert_int_equal(journal_fence(journal, "x.service", true)->n_given, 1);
    assert_null(journal_fence(journal, "y.service", false));

    /* With another value before, the sets already given stay known. */
    cpus.before = fixture_mask(f, "1");
    assert_int_equal(journal_note_fence(journal, &cpus), 0);
    assert_int_equal(journal_fence(journal, "x.service", false)->n_given, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(journal_note_unfenced(journal, "x.service", false), 0);
        assert_non_null(journal_fence(journal, "x.service", true));
    }
    assert_int_equal(journal_note_unfenced(journal, "x.service", true), 0);
    journal = journal_free(journal);
    assert_int_equal(open_journal(f, &journal, &error), 0);
    assert_int_equal(journal->n_fences, 0);
}

/* Earlier entries are not lost when somebody removes or cuts the file. */
static void test_lost(void **state)
{
    static const char both[] = HEADER
        "fence kind=unit name=\"x.service\" path=\"/s.slice/x.service\" before=0-1 memory=no dropin=no inode=0\n"
        "fenced name=\"x.service\" memory=no cpus=1\n";
    Fixture *f = *state;

    for (unsigned cut = 0; cut < 2; cut++) {
        CLEANUP(journal_free_p) Journal *journal = NULL;
        CLEANUP_FREE char *error = NULL;
        const JournalFence fence = {
            .kind = ACT_FENCE_UNIT,
            .name = "x.service",
            .path = "/s.slice/x.service",
            .before = fixture_mask(f, "0-1"),
        };

        (void)unlink(f->journal);
        assert_int_equal(open_journal(f, &journal, &error), 0);
        assert_int_equal(journal_note_fence(journal, &fence), 0);
        assert_int_equal(cut ? truncate(f->journal, 5) : unlink(f->journal), 0);
        assert_int_equal(journal_note_fenced(journal, "x.service", false, fixture_mask(f, "1")), 0);
        assert_file(f, "journal", both);
    }
}

static void test_nul_line(void **state)
{
    static const char text[] = HEADER "process pid=1\0 start\n" BODY;

    assert_corrupt(*state, text, sizeof(text) - 1,
                   "2: expected printable ASCII; write other bytes as \\xNN inside quotes", 3);
}

static void test_too_large(void **state)
{
    Fixture *f = *state;
    CLEANUP(journal_free_p) Journal *journal = NULL;
    CLEANUP_FREE char *error = NULL;
    int fd;

    /* A hole takes no space on the disk. */
    fixture_write_journal(f, HEADER BODY, strlen(HEADER BODY));
    fd = open(f->journal, O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, (off_t)JOURNAL_FILE_MAX + 1), 0);
    assert_int_equal(close(fd), 0);
    assert_int_equal(open_journal(f, &journal, &error), ACT_E_CORRUPT);
    assert_non_null(strstr(error, "expected at most 67108864 bytes"));
    assert_int_equal(journal->n_processes, 3);
}

static void test_other_boot(void **state)
{
    Fixture *f = *state;
    CLEANUP(journal_free_p) Journal *journal = NULL;
    CLEANUP_FREE char *error = NULL;
    static const char text[] = "journal version=1 boot=\"another\"\n" BODY "garbage\n";

    fixture_write_journal(f, text, strlen(text));
    assert_int_equal(open_journal(f, &journal, &error), 0);
    assert_int_equal(journal->n_processes, 0);
    assert_file(f, "journal", HEADER);
    assert_no_file(f, "journal.corrupt");
}

static void assert_refused(Fixture *f, int expected, const char *what)
{
    CLEANUP(journal_free_p) Journal *journal = NULL;
    CLEANUP_FREE char *error = NULL;

    assert_int_equal(open_journal(f, &journal, &error), expected);
    assert_null(journal);
    assert_non_null(error);
    assert_non_null(strstr(error, f->journal));
    if (!strstr(error, what))
        fail_msg("\"%s\" does not say \"%s\"", error, what);
    assert_null(strchr(error, '\n'));
}

static void test_not_trusted(void **state)
{
    Fixture *f = *state;
    char other[PATH_MAX + 16];

    (void)snprintf(other, sizeof(other), "%s/other", f->directory);
    fixture_write_journal(f, HEADER BODY, strlen(HEADER BODY));

    assert_int_equal(chmod(f->journal, 0620), 0);
    assert_refused(f, -EPERM, "mode 0620; expected a file that only its owner can write");
    assert_int_equal(chmod(f->journal, 0602), 0);
    assert_refused(f, -EPERM, "mode 0602");
    assert_int_equal(chmod(f->journal, 0600), 0);

    assert_int_equal(link(f->journal, other), 0);
    assert_refused(f, -EPERM, "has 2 hard links; expected one");
    assert_int_equal(unlink(f->journal), 0);
    assert_int_equal(symlink(other, f->journal), 0);
    assert_refused(f, -EPERM, "a symbolic link; expected a regular file");
    assert_int_equal(unlink(f->journal), 0);
    assert_int_equal(mkfifo(f->journal, 0600), 0);
    assert_refused(f, -EPERM, "not a regular file");
    assert_int_equal(unlink(f->journal), 0);
    assert_int_equal(mkdir(f->journal, 0700), 0);
    assert_refused(f, -EISDIR, "cannot open it: Is a directory");
    assert_int_equal(rmdir(f->journal), 0);

    assert_int_equal(chmod(f->directory, 0777), 0);
    assert_refused(f, -EPERM, "its directory is writable by others");
    assert_int_equal(chmod(f->directory, 0700), 0);
    (void)snprintf(f->journal, sizeof(f->journal), "%s/missing/journal", f->directory);
    assert_refused(f, -ENOENT, "cannot open its directory");
}

/* As root only: chown(2). */
static void test_foreign_owner(void **state)
{
    Fixture *f = *state;

    fixture_write_journal(f, HEADER BODY, strlen(HEADER BODY));
    assert_int_equal(chown(f->journal, 65534, 65534), 0);
    assert_refused(f, -EPERM, "owned by user 65534; expected user 0");
    assert_int_equal(unlink(f->journal), 0);
    assert_int_equal(chown(f->directory, 65534, 65534), 0);
    assert_refused(f, -EPERM, "its directory is writable by others");
}

static void test_no_boot_id(void **state)
{
    Fixture *f = *state;
    CLEANUP(journal_free_p) Journal *journal = NULL;
    CLEANUP_FREE char *error = NULL;

    assert_int_equal(unlink(test_path(f->directory, "proc/sys/kernel/random/boot_id")), 0);
    assert_int_equal(open_journal(f, &journal, &error), -ENOENT);
    assert_string_equal(error, "/proc/sys/kernel/random/boot_id: cannot be read: No such file or directory");
}

/* Neither a crash while a damaged journal is replaced, nor a directory in the way of the new file, loses it. */
static void test_replace_fails(void **state)
{
    Fixture *f = *state;
    CLEANUP(journal_free_p) Journal *journal = NULL;
    CLEANUP_FREE char *error = NULL;

    (void)test_mkdir(f->directory, "journal.new");
    fixture_write_journal(f, HEADER BODY "garbage\n", strlen(HEADER BODY "garbage\n"));
    assert_int_equal(open_journal(f, &journal, &error), ACT_E_CORRUPT);
    assert_int_equal(journal->n_processes, 3);
    assert_int_equal(journal_compact(journal, NULL, 0), -EISDIR);
    assert_file(f, "journal", HEADER BODY "garbage\n");
    assert_no_file(f, "journal.corrupt");
    assert_int_equal(unlinkat(f->root_fd, "journal.new", AT_REMOVEDIR), 0);
    assert_int_equal(journal_compact(journal, NULL, 0), 0);
    assert_file(f, "journal", HEADER);
}

/* "Kept" stays in force until something else is written. */
static void test_kept(void **state)
{
    Fixture *f = *state;
    CLEANUP(journal_free_p) Journal *journal = NULL, *reading = NULL, *again = NULL, *last = NULL;
    CLEANUP_FREE char *error = NULL;

    assert_int_equal(journal_open_reading(f->journal, f->root_fd, &reading, &error), -ENOENT);
    assert_null(error);
    assert_no_file(f, "journal");
    fixture_write_journal(f, HEADER BODY, strlen(HEADER BODY));
    assert_int_equal(open_journal(f, &journal, &error), 0);
    assert_false(journal->kept);
    assert_int_equal(journal_note_kept(journal, true), 0);
    assert_int_equal(journal_note_kept(journal, true), 0);
    assert_file(f, "journal", HEADER BODY "kept\n");

    assert_int_equal(journal_open_reading(f->journal, f->root_fd, &reading, &error), 0);
    assert_true(reading->kept);
    assert_int_equal(reading->n_processes, 3);
    assert_int_equal(open_journal(f, &again, &error), 0);
    assert_true(again->kept);
    assert_int_equal(journal_note_settled(again), 0);
    assert_false(again->kept);
    assert_int_equal(journal_note_kept(again, true), 0);
    assert_int_equal(journal_note_kept(again, false), 0);
    assert_file(f, "journal", HEADER BODY "kept\nsettled\nkept\nunkept\n");
    assert_int_equal(open_journal(f, &last, &error), 0);
    assert_false(last->kept);
}

/* Opening for reading changes nothing: no damaged file, none of another boot, and none that a crash left with
 * two names. */
static void test_reading(void **state)
{
    static const char other[] = "journal version=1 boot=\"other\"\n" BODY;
    static const char damaged[] = HEADER BODY "garbage\nkept";
    Fixture *f = *state;
    CLEANUP(journal_free_p) Journal *journal = NULL, *foreign = NULL;
    CLEANUP_FREE char *error = NULL;

    fixture_write_journal(f, damaged, strlen(damaged));
    assert_int_equal(link(f->journal, test_path(f->directory, "journal.corrupt")), 0);
    assert_int_equal(journal_open_reading(f->journal, f->root_fd, &journal, &error), 0);
    assert_int_equal(journal->n_processes, 3);
    assert_false(journal->kept);
    assert_file(f, "journal", damaged);
    assert_file(f, "journal.corrupt", damaged);

    assert_int_equal(unlink(f->journal), 0);
    fixture_write_journal(f, other, strlen(other));
    assert_int_equal(journal_open_reading(f->journal, f->root_fd, &foreign, &error), 0);
    assert_int_equal(foreign->n_processes, 0);
    assert_file(f, "journal", other);
    assert_int_equal(chmod(f->journal, 0666), 0);
    assert_int_equal(journal_open_reading(f->journal, f->root_fd, &foreign, &error), -EPERM);
    assert_non_null(strstr(error, "mode 0666"));
}

/* What a crash leaves after each step of putting a damaged journal aside. The next start reads everything,
 * and puts the damaged file aside. */
static void test_put_aside_after_a_crash(void **state)
{
    static const struct {
        const char *fresh, *corrupt; /* NULL: no such file */
        bool linked;
    } crashes[] = {
        {.fresh = ""},                          /* created, nothing written */
        {.fresh = HEADER "process pid=1"},      /* partly written */
        {.fresh = HEADER, .corrupt = "before"}, /* written, beside one put aside earlier */
        {.fresh = HEADER},                      /* and that one was removed */
        {.fresh = HEADER, .linked = true},      /* the damaged one has both names */
        {.linked = true},                       /* then the disk was full */
    };
    Fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(crashes); i++) {
        CLEANUP(journal_free_p) Journal *journal = NULL, *again = NULL;
        CLEANUP_FREE char *error = NULL, *none = NULL;
        struct stat st;

        assert_no_file(f, "journal.new");
        assert_no_file(f, "journal.corrupt");
        fixture_write_journal(f, HEADER BODY "garbage\n", strlen(HEADER BODY "garbage\n"));
        if (crashes[i].fresh)
            (void)test_write(f->directory, "journal.new", crashes[i].fresh);
        if (crashes[i].corrupt)
            (void)test_write(f->directory, "journal.corrupt", crashes[i].corrupt);
        if (crashes[i].linked)
            assert_int_equal(link(f->journal, test_path(f->directory, "journal.corrupt")), 0);

        assert_int_equal(open_journal(f, &journal, &error), ACT_E_CORRUPT);
        assert_int_equal(journal->n_processes, 3);
        assert_file(f, "journal.corrupt", HEADER BODY "garbage\n");
        assert_int_equal(fstatat(f->root_fd, "journal.corrupt", &st, 0), 0);
        assert_int_equal(st.st_nlink, 1);
        assert_no_file(f, "journal.new");
        assert_int_equal(open_journal(f, &again, &none), 0);
        assert_int_equal(again->n_processes, 3);
        (void)unlinkat(f->root_fd, "journal", 0);
        (void)unlinkat(f->root_fd, "journal.corrupt", 0);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_new),        TEST(test_round_trip),    TEST(test_later_lines_win),
        TEST(test_torn),       TEST(test_corrupt),       TEST(test_fences),
        TEST(test_lost),       TEST(test_nul_line),      TEST(test_too_large),
        TEST(test_other_boot), TEST(test_not_trusted),   TEST(test_foreign_owner),
        TEST(test_no_boot_id), TEST(test_replace_fails), TEST(test_put_aside_after_a_crash),
        TEST(test_kept),       TEST(test_reading),
    };

    if (geteuid() != 0) {
        (void)puts("# not run, since it needs root: test_foreign_owner");
        cmocka_set_skip_filter("test_foreign_owner");
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
