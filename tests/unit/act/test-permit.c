/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whether a daemon may place processes, by its capabilities and by what /proc shows. */

#include "../temp-tree.h"
#include "act/act.h"
#include "base/root.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Makes only these capabilities effective. Returns whether they are. */
static bool leave(unsigned a, unsigned b)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    assert_int_equal(syscall(SYS_capget, &header, data), 0);
    data[0].effective = (CAP_TO_MASK(a) | CAP_TO_MASK(b)) & data[0].permitted;
    data[1].effective = 0;
    assert_int_equal(syscall(SYS_capset, &header, data), 0);
    return data[0].effective == (CAP_TO_MASK(a) | CAP_TO_MASK(b));
}

/* Judges as if these were the mount options of /proc. */
static const char *judge(const char *options)
{
    char *directory = test_tree_new(), text[256];
    CLEANUP_CLOSE int root_fd = root_open(directory);
    const char *answer;

    (void)snprintf(
        text, sizeof(text),
        "proc /proc proc rw,hidepid=ptraceable 0 0\nproc /proc proc %s 0 0\nproc /x proc rw,hidepid=4 0 0\n",
        options);
    (void)test_write(directory, "proc/self/mounts", text);
    assert_true(root_fd >= 0);
    answer = act_forbidden(root_fd);
    test_tree_remove(directory);
    return answer;
}

static void test_capability(void **state)
{
    (void)state;
    if (leave(CAP_SYS_NICE, CAP_SYS_PTRACE))
        assert_null(judge("rw"));
    (void)leave(CAP_SYS_PTRACE, CAP_SYS_PTRACE);
    assert_string_equal(judge("rw"), "CAP_SYS_NICE is missing");
}

static void test_hidden(void **state)
{
    static const struct {
        const char *options;
        bool hides;
    } cases[] = {
        {"rw,nosuid", false},
        {"rw,hidepid=0", false},
        {"rw,hidepid=off,gid=7", false},
        {"rw,gid=7,hidepid=invisible", true},
        {"rw,gid=7,hidepid=2", true},
        {"rw,gid=7,hidepid=noaccess,subset=pid", true},
        /* Members of the group see everything, except in the strictest mode. */
        {"rw,gid=9,hidepid=invisible", false},
        {"rw,gid=9,hidepid=ptraceable", true},
        {"rw,hidepid=4", true},
    };
    const gid_t groups[] = {9};

    (void)state;
    if (!leave(CAP_SYS_NICE, CAP_SETGID) || setgroups(1, groups) < 0)
        skip();
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if ((judge(cases[i].options) != NULL) != cases[i].hides)
            fail_msg("%s", cases[i].options);
    /* With CAP_SYS_PTRACE it does not matter. */
    if (leave(CAP_SYS_NICE, CAP_SYS_PTRACE))
        assert_null(judge("rw,hidepid=4"));
}

TEST_MAIN(NULL, NULL, test_capability, test_hidden)
