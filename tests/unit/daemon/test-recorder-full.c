/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A record whose last entry does not fit ends with the entry before, and can be read. */

#include "../plan/fixture.h"
#include "../temp-tree.h"
#include "daemon/recorder.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>

static off_t size_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return st.st_size;
}

static unsigned count_entries(const char *path)
{
    CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
    CLEANUP_FREE char *text = NULL;
    CLEANUP(transcript_reader_done) TranscriptReader reader = {0};
    TranscriptPlan plan;
    unsigned n = 0;
    size_t len;
    int r;

    assert_int_equal(root_read_fd(fd, TRANSCRIPT_MAX, &text, &len), 0);
    reader = transcript_reader(text, len);
    for (; (r = transcript_next(&reader, &plan)) > 0; n++)
        transcript_plan_done(&plan);
    if (r < 0)
        fail_msg("%s", reader.error);
    return n;
}

static void test_full(void **state)
{
    char *base = test_tree_new();
    const char *path = test_path(base, "record");
    Log log = {.level = LOG_EMERG};
    Recorder *recorder = NULL;
    struct rlimit limit, low;
    off_t len;
    TranscriptEntry entry;
    Fixture f;

    fixture_init_with(&f, TWO_SHARDS, "[Placement]\nMode=auto\n");
    fixture_plan(&f, true);
    entry = (TranscriptEntry){.world = f.world, .policies = f.policies, .limits = &f.limits, .plan = &f.plan};

    assert_int_equal(recorder_new(path, &log, &recorder), 0);
    assert_int_equal(recorder_add(recorder, &entry), 0);
    len = size_of(path);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    low = (struct rlimit){(rlim_t)len + 100, limit.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    assert_int_equal(recorder_add(recorder, &entry), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(recorder_add(recorder, &entry), 0);
    assert_int_equal(size_of(path), len);
    assert_int_equal(count_entries(path), 1);
    recorder_free(recorder);
    assert_int_equal(size_of(path), len);
    fixture_done(&f);
    test_tree_remove(base);
}

TEST_MAIN(NULL, NULL, test_full)
