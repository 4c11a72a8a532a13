/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Requests to a service manager, and its answers: this program has both ends of the socket. */

#include "act/fence/unit.h"
#include "base/parse.h"
#include "unit-test.h"

#include <sys/socket.h>

typedef struct Ends {
    sd_bus *manager;
    FenceUnits *units;
    sd_bus_message *asked; /* not answered yet */
} Ends;

static int on_call(sd_bus_message *message, void *userdata, sd_bus_error *ret_error)
{
    Ends *ends = userdata;

    assert_true(
        sd_bus_message_is_method_call(message, "org.freedesktop.systemd1.Manager", "SetUnitProperties"));
    assert_string_equal(sd_bus_message_get_path(message), "/org/freedesktop/systemd1");
    assert_null(ends->asked);
    ends->asked = sd_bus_message_ref(message);
    return 1;
}

static int setup(void **state)
{
    Ends *ends = calloc(1, sizeof(*ends));
    sd_id128_t id = SD_ID128_MAKE(01, 02, 03, 04, 05, 06, 07, 08, 09, 0a, 0b, 0c, 0d, 0e, 0f, 10);
    sd_bus *client = NULL;
    int fds[2];

    assert_non_null(ends);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    assert_true(sd_bus_new(&ends->manager) >= 0);
    assert_true(sd_bus_set_fd(ends->manager, fds[0], fds[0]) >= 0);
    assert_true(sd_bus_set_server(ends->manager, true, id) >= 0);
    assert_true(sd_bus_set_anonymous(ends->manager, true) >= 0);
    assert_true(sd_bus_add_filter(ends->manager, NULL, on_call, ends) >= 0);
    assert_true(sd_bus_start(ends->manager) >= 0);
    assert_true(sd_bus_new(&client) >= 0);
    assert_true(sd_bus_set_fd(client, fds[1], fds[1]) >= 0);
    assert_true(sd_bus_set_anonymous(client, true) >= 0);
    assert_true(sd_bus_start(client) >= 0);
    ends->units = fence_units_new("AllowedCPUs", client);
    assert_non_null(ends->units);
    sd_bus_unref(client);
    *state = ends;
    return 0;
}

static int teardown(void **state)
{
    CLEANUP_FREE Ends *ends = *state;

    fence_units_free(ends->units);
    sd_bus_message_unref(ends->asked);
    sd_bus_close_unref(ends->manager);
    return 0;
}

static int set(Ends *ends, const char *unit, const char *list)
{
    CLEANUP_BITMAP hwloc_bitmap_t cpus = hwloc_bitmap_alloc();

    assert_int_equal(parse_list(list, PARSE_CPU_MAX, cpus), 0);
    return fence_ops_unit.set(ends->units, unit, cpus);
}

static int result(Ends *ends, const char *unit)
{
    return fence_ops_unit.result(ends->units, unit);
}

/* Lets both ends process their messages. */
static void talk(Ends *ends, const char *unit)
{
    for (unsigned i = 0; i < 64; i++) {
        (void)sd_bus_process(ends->manager, NULL);
        (void)result(ends, unit);
    }
}

/* Asserts that exactly this was asked for. */
static void assert_asked(Ends *ends, const char *unit, const void *bytes, size_t n)
{
    const char *name, *property;
    const void *value;
    size_t size;
    int runtime;

    assert_non_null(ends->asked);
    assert_true(sd_bus_message_read(ends->asked, "sb", &name, &runtime) > 0);
    assert_string_equal(name, unit);
    assert_true(runtime);
    assert_true(sd_bus_message_enter_container(ends->asked, 'a', "(sv)") > 0);
    assert_true(sd_bus_message_enter_container(ends->asked, 'r', "sv") > 0);
    assert_true(sd_bus_message_read(ends->asked, "s", &property) > 0);
    assert_string_equal(property, "AllowedCPUs");
    assert_true(sd_bus_message_enter_container(ends->asked, 'v', "ay") > 0);
    assert_true(sd_bus_message_read_array(ends->asked, 'y', &value, &size) >= 0);
    assert_int_equal(size, n);
    if (n > 0)
        assert_memory_equal(value, bytes, n);
    assert_true(sd_bus_message_exit_container(ends->asked) >= 0);
    assert_true(sd_bus_message_exit_container(ends->asked) >= 0);
    assert_true(sd_bus_message_at_end(ends->asked, false) > 0);
}

static void answer(Ends *ends, const char *error)
{
    if (error)
        assert_true(sd_bus_reply_method_errorf(ends->asked, error, "so it is") >= 0);
    else
        assert_true(sd_bus_reply_method_return(ends->asked, NULL) >= 0);
    ends->asked = sd_bus_message_unref(ends->asked);
}

static void test_set(void **state)
{
    Ends *ends = *state;

    assert_int_equal(set(ends, "x.service", "0-1,9"), 0);
    assert_int_equal(result(ends, "x.service"), -EINPROGRESS);
    talk(ends, "x.service");
    assert_asked(ends, "x.service", "\x03\x02", 2);
    assert_int_equal(result(ends, "x.service"), -EINPROGRESS);
    answer(ends, NULL);
    talk(ends, "x.service");
    assert_int_equal(result(ends, "x.service"), 0);

    assert_int_equal(set(ends, "x.service", ""), 0);
    talk(ends, "x.service");
    assert_asked(ends, "x.service", NULL, 0);
    answer(ends, NULL);
    talk(ends, "x.service");
    assert_int_equal(result(ends, "x.service"), 0);
    fence_ops_unit.forget(ends->units, "x.service");
    assert_int_equal(result(ends, "x.service"), 0);
}

static void test_errors(void **state)
{
    static const struct {
        const char *name;
        int result;
    } cases[] = {
        {"org.freedesktop.systemd1.NoSuchUnit", -ENOENT},
        {"org.freedesktop.DBus.Error.AccessDenied", -EACCES},
    };
    Ends *ends = *state;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(set(ends, "x.service", "1"), 0);
        talk(ends, "x.service");
        answer(ends, cases[i].name);
        talk(ends, "x.service");
        assert_int_equal(result(ends, "x.service"), cases[i].result);
    }
}

/* A manager that disconnects counts as an answer. */
static void test_lost(void **state)
{
    Ends *ends = *state;

    assert_int_equal(set(ends, "x.service", "1"), 0);
    talk(ends, "x.service");
    assert_non_null(ends->asked);
    ends->asked = sd_bus_message_unref(ends->asked);
    sd_bus_close(ends->manager);
    for (unsigned i = 0; i < 64 && result(ends, "x.service") == -EINPROGRESS; i++)
        ;
    assert_true(result(ends, "x.service") < 0);
    assert_int_not_equal(result(ends, "x.service"), -EINPROGRESS);
}

/* wait() does not wait longer than it was told for a manager that does not answer. */
static void test_wait(void **state)
{
    Ends *ends = *state;

    assert_int_equal(set(ends, "x.service", "1"), 0);
    fence_ops_unit.wait(ends->units, 1000);
    assert_int_equal(result(ends, "x.service"), -EINPROGRESS);
}

TEST_MAIN(setup, teardown, test_set, test_errors, test_lost, test_wait)
