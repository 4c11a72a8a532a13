/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Messages are made on a connection over a socketpair that never answers, which is enough to build and read them. */

#include "ctl-test.h"
#include "ctl/bus-json.h"

#include <sys/socket.h>
#include <unistd.h>

typedef struct Fixture {
    int peer;
    sd_bus *bus;
    sd_bus_message *message;
} Fixture;

static int setup(void **state)
{
    Fixture *f = calloc(1, sizeof(*f));
    int fds[2];

    assert_non_null(f);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    f->peer = fds[1];
    assert_true(sd_bus_new(&f->bus) >= 0);
    assert_true(sd_bus_set_fd(f->bus, fds[0], fds[0]) >= 0);
    assert_true(sd_bus_start(f->bus) >= 0);
    assert_true(sd_bus_message_new_method_call(f->bus, &f->message, NULL, "/a", "a.b", "C") >= 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    CLEANUP_FREE Fixture *f = *state;

    (void)sd_bus_message_unref(f->message);
    (void)sd_bus_close_unref(f->bus);
    (void)close(f->peer);
    return 0;
}

/* Seals what was appended and compares its first value. */
static void check_json_keys(Fixture *f, const char *const *keys, const char *expected)
{
    CLEANUP_JSON json_object *value = NULL;

    assert_true(sd_bus_message_seal(f->message, 1, 0) >= 0);
    assert_true(sd_bus_message_rewind(f->message, true) >= 0);
    assert_int_equal(bus_json_read(f->message, keys, &value), 0);
    assert_string_equal(json_object_to_json_string_ext(value, JSON_C_TO_STRING_NOSLASHESCAPE), expected);
}

static void check_json(Fixture *f, const char *expected)
{
    check_json_keys(f, NULL, expected);
}

static void test_dictionary(void **state)
{
    Fixture *f = *state;

    assert_true(sd_bus_message_append(f->message, "a{sv}", 3, "name", "s", "a\n\"b", "tasks", "u", UINT32_MAX,
                                      "paused", "b", true) >= 0);
    check_json(f, "{\"name\":\"a\\n\\\"b\",\"tasks\":4294967295,\"paused\":true}");
}

static void test_list_of_dictionaries(void **state)
{
    Fixture *f = *state;

    assert_true(sd_bus_message_append(f->message, "aa{sv}", 2, 1, "pid", "i", 7, 1, "pid", "i", -1) >= 0);
    check_json(f, "[{\"pid\":7},{\"pid\":-1}]");
}

static void test_nesting(void **state)
{
    Fixture *f = *state;

    assert_true(sd_bus_message_append(f->message, "a{sv}", 3, "groups", "aa{sv}", 1, 1, "id", "t",
                                      (uint64_t)1, "refused", "a{st}", 1, "budget", (uint64_t)3, "distances",
                                      "au", 2, 10, 21) >= 0);
    check_json(f, "{\"groups\":[{\"id\":1}],\"refused\":{\"budget\":3},\"distances\":[10,21]}");
}

/* Ignored values may be of any type, and be the first or the last. */
static void test_keys(void **state)
{
    static const char *const keys[] = {"id", "groups", NULL};
    Fixture *f = *state;

    assert_true(sd_bus_message_append(f->message, "aa{sv}", 2, 4, "refused", "a{st}", 1, "id", (uint64_t)3,
                                      "groups", "aa{sv}", 1, 2, "name", "s", "x", "id", "t", (uint64_t)1,
                                      "id", "t", (uint64_t)2, "tasks", "au", 2, 10, 21, 1, "name", "s",
                                      "y") >= 0);
    check_json_keys(f, keys, "[{\"groups\":[{\"id\":1}],\"id\":2},{}]");
}

static void test_every_basic_type(void **state)
{
    Fixture *f = *state;

    assert_true(sd_bus_message_append(f->message, "(ybnqiuxtdsog)", 1, false, -2, 3, -4, 5, (int64_t)-6,
                                      UINT64_MAX, 0.5, "s", "/o", "g") >= 0);
    check_json(f, "[1,false,-2,3,-4,5,-6,18446744073709551615,0.5,\"s\",\"/o\",\"g\"]");
}

static void test_number_keys(void **state)
{
    Fixture *f = *state;

    assert_true(sd_bus_message_append(f->message, "a{us}", 2, 3, "c", 1, "a") >= 0);
    check_json(f, "{\"3\":\"c\",\"1\":\"a\"}");
}

static void test_empty(void **state)
{
    Fixture *f = *state;

    assert_true(sd_bus_message_append(f->message, "(a{sv}aa{sv}as)", 0, 0, 0) >= 0);
    check_json(f, "[{},[],[]]");
}

static void test_end_of_message(void **state)
{
    Fixture *f = *state;
    json_object *value = NULL;

    assert_true(sd_bus_message_seal(f->message, 1, 0) >= 0);
    assert_true(sd_bus_message_rewind(f->message, true) >= 0);
    assert_int_equal(bus_json_read(f->message, NULL, &value), -ENXIO);
    assert_null(value);
}

static void test_descriptors_are_not_json(void **state)
{
    Fixture *f = *state;
    json_object *value = NULL;

    if (sd_bus_message_append(f->message, "h", STDERR_FILENO) < 0)
        skip(); /* the peer never agreed to pass descriptors */
    assert_true(sd_bus_message_seal(f->message, 1, 0) >= 0);
    assert_true(sd_bus_message_rewind(f->message, true) >= 0);
    assert_int_equal(bus_json_read(f->message, NULL, &value), -ENOTSUP);
}

TEST_MAIN(setup, teardown, test_dictionary, test_list_of_dictionaries, test_nesting, test_keys,
          test_every_basic_type, test_number_keys, test_empty, test_end_of_message,
          test_descriptors_are_not_json)
