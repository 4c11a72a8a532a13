/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Who may change something on the system bus. One connection is the daemon's; at its other end the test plays
 * the bus, polkit and the callers. */

#include "base/util.h"
#include "daemon/bus/authorize.h"
#include "numaplace/bus.h"
#include "unit-test.h"

#include <sys/socket.h>
#include <systemd/sd-event.h>

#define PATH      "/org/numaplace1"
#define INTERFACE "org.numaplace1.Test"

typedef enum Answer {
    ANSWER_NO,
    ANSWER_YES,
    ANSWER_CHALLENGE,
    ANSWER_ERROR,
    ANSWER_NEVER,
} Answer;

typedef struct Fixture {
    sd_event *event;
    sd_bus *daemon, *world;
    BusRequests requests;
    BusPeer peer;
    uint32_t uid;        /* that the bus reports */
    Answer bus, polkit;  /* how they answer; the bus gives a number, not yes or no */
    char asked[128];     /* what polkit was asked: action, workload */
    int handler_error;   /* what the handler returns once it may run */
    unsigned n_entered;  /* times the handler was called */
    unsigned n_changes;  /* times it was allowed to continue */
    unsigned n_ok;       /* replies to callers */
    char last_error[96]; /* name of the last error a caller got */
} Fixture;

static int method_change(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    BusPeer *peer = userdata;
    Fixture *f = peer->userdata;
    const char *name;
    int r;

    f->n_entered++;
    r = sd_bus_message_read(message, "s", &name);
    if (r < 0)
        return r;
    r = bus_authorize(message, peer, NUMAPLACE_ACTION_OVERRIDE, name, method_change, error);
    if (r <= 0)
        return r < 0 ? r : 1;
    f->n_changes++;
    return f->handler_error < 0 ? f->handler_error : sd_bus_reply_method_return(message, NULL);
}

static const sd_bus_vtable daemon_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("Change", "s", "", method_change, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

static int get_uid(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    const Fixture *f = userdata;

    if (f->bus == ANSWER_NEVER)
        return 1;
    if (f->bus == ANSWER_ERROR)
        return sd_bus_error_set_const(error, SD_BUS_ERROR_NAME_HAS_NO_OWNER, "gone");
    return sd_bus_reply_method_return(message, "u", f->uid);
}

static int check_authorization(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    const char *kind, *key, *name, *action, *detail, *workload;
    Fixture *f = userdata;

    assert_true(sd_bus_message_read(message, "(sa{sv})s", &kind, 1, &key, "s", &name, &action) >= 0);
    assert_true(sd_bus_message_read(message, "a{ss}", 1, &detail, &workload) >= 0);
    (void)snprintf(f->asked, sizeof(f->asked), "%s %s %s %s %s=%s", kind, key, name, action, detail,
                   workload);
    if (f->polkit == ANSWER_NEVER)
        return 1;
    if (f->polkit == ANSWER_ERROR)
        return sd_bus_error_set_const(error, SD_BUS_ERROR_SERVICE_UNKNOWN, "there is no polkit");
    return sd_bus_reply_method_return(message, "(bba{ss})", f->polkit == ANSWER_YES,
                                      f->polkit == ANSWER_CHALLENGE, 0);
}

static const sd_bus_vtable bus_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("GetConnectionUnixUser", "s", "u", get_uid, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

static const sd_bus_vtable polkit_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("CheckAuthorization", "(sa{sv})sa{ss}us", "(bba{ss})", check_authorization,
                  SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

static sd_bus *connection(Fixture *f, int fd, bool server)
{
    sd_bus *bus = NULL;
    sd_id128_t id;

    assert_true(sd_id128_randomize(&id) >= 0);
    assert_true(sd_bus_new(&bus) >= 0);
    assert_true(sd_bus_set_fd(bus, fd, fd) >= 0);
    assert_true(!server || sd_bus_set_server(bus, 1, id) >= 0);
    assert_true(sd_bus_set_anonymous(bus, 1) >= 0);
    assert_true(sd_bus_start(bus) >= 0);
    assert_true(sd_bus_attach_event(bus, f->event, 0) >= 0);
    return bus;
}

/* Runs the loop until nothing is left to do. */
static void settle(Fixture *f)
{
    while (sd_event_run(f->event, 0) > 0)
        ;
}

static int setup(void **state)
{
    Fixture *f = calloc(1, sizeof(*f));
    int fds[2];

    assert_non_null(f);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    assert_true(sd_event_new(&f->event) >= 0);
    f->daemon = connection(f, fds[0], false);
    f->world = connection(f, fds[1], true);
    f->uid = geteuid() + 1;
    f->peer = (BusPeer){.userdata = f, .requests = &f->requests};
    assert_true(sd_bus_add_object_vtable(f->daemon, NULL, PATH, INTERFACE, daemon_vtable, &f->peer) >= 0);
    assert_true(sd_bus_add_object_vtable(f->world, NULL, "/org/freedesktop/DBus", "org.freedesktop.DBus",
                                         bus_vtable, f) >= 0);
    assert_true(sd_bus_add_object_vtable(f->world, NULL, "/org/freedesktop/PolicyKit1/Authority",
                                         "org.freedesktop.PolicyKit1.Authority", polkit_vtable, f) >= 0);
    settle(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    CLEANUP_FREE Fixture *f = *state;

    bus_requests_clear(&f->requests);
    assert_int_equal(f->requests.n, 0);
    assert_null(f->requests.first);
    sd_bus_close_unref(f->daemon);
    sd_bus_close_unref(f->world);
    sd_event_unref(f->event);
    return 0;
}

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    Fixture *f = userdata;
    const sd_bus_error *refused = sd_bus_message_get_error(reply);

    if (refused)
        (void)snprintf(f->last_error, sizeof(f->last_error), "%s", refused->name);
    else
        f->n_ok++;
    return 1;
}

/* A call by the caller ":1.N". */
static void change(Fixture *f, unsigned n)
{
    CLEANUP(sd_bus_message_unrefp) sd_bus_message *call = NULL;
    char sender[16];

    (void)snprintf(sender, sizeof(sender), ":1.%u", n);
    assert_true(sd_bus_message_new_method_call(f->world, &call, NULL, PATH, INTERFACE, "Change") >= 0);
    assert_true(sd_bus_message_set_sender(call, sender) >= 0);
    assert_true(sd_bus_message_append(call, "s", "50-shop") >= 0);
    assert_true(sd_bus_call_async(f->world, NULL, call, on_reply, f, 0) >= 0);
    settle(f);
}

static void test_root_may(void **state)
{
    Fixture *f = *state;

    f->uid = 0;
    change(f, 7);
    assert_int_equal(f->n_ok, 1);
    assert_int_equal(f->n_entered, 2);
    assert_int_equal(f->n_changes, 1);
    assert_string_equal(f->asked, "");
    assert_int_equal(f->requests.n, 0);
}

static void test_the_user_of_the_daemon_may(void **state)
{
    Fixture *f = *state;

    f->uid = geteuid();
    change(f, 7);
    assert_int_equal(f->n_ok, 1);
    assert_string_equal(f->asked, "");
}

static void test_whom_polkit_lets_may(void **state)
{
    Fixture *f = *state;

    f->polkit = ANSWER_YES;
    change(f, 7);
    assert_int_equal(f->n_ok, 1);
    assert_int_equal(f->n_changes, 1);
    assert_string_equal(f->asked, "system-bus-name name :1.7 org.numaplace1.override workload=50-shop");
}

static void test_others_may_not(void **state)
{
    static const char *const errors[] = {
        [ANSWER_NO] = NUMAPLACE_ERROR_NOT_PERMITTED,
        [ANSWER_CHALLENGE] = SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
        [ANSWER_ERROR] = NUMAPLACE_ERROR_NOT_PERMITTED,
    };
    Fixture *f = *state;

    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        if (!errors[i])
            continue;
        f->polkit = (Answer)i;
        f->last_error[0] = '\0';
        change(f, 7);
        assert_string_equal(f->last_error, errors[i]);
        assert_int_equal(f->requests.n, 0);
    }
    assert_int_equal(f->n_changes, 0);
    assert_int_equal(f->n_ok, 0);
}

static void test_the_error_of_a_granted_change_is_answered(void **state)
{
    Fixture *f = *state;

    f->polkit = ANSWER_YES;
    f->handler_error = -EBUSY;
    change(f, 7);
    assert_string_equal(f->last_error, "System.Error.EBUSY");
    assert_int_equal(f->requests.n, 0);
}

static void test_a_caller_that_is_gone_is_forgotten(void **state)
{
    Fixture *f = *state;

    f->bus = ANSWER_ERROR;
    change(f, 7);
    assert_int_equal(f->requests.n, 0);
    assert_int_equal(f->n_entered, 1);
}

static void test_waiting_is_limited(void **state)
{
    Fixture *f = *state;

    f->polkit = ANSWER_NEVER;
    for (unsigned i = 0; i < BUS_REQUESTS_MAX_PER_CALLER; i++)
        change(f, 0);
    assert_string_equal(f->last_error, "");
    change(f, 0);
    assert_string_equal(f->last_error, NUMAPLACE_ERROR_LIMIT);
    assert_int_equal(f->requests.n, BUS_REQUESTS_MAX_PER_CALLER);

    /* The limit of one user, over all its connections; then of other users. */
    for (unsigned i = BUS_REQUESTS_MAX_PER_CALLER; i < BUS_REQUESTS_MAX; i++) {
        if (i % BUS_REQUESTS_MAX_PER_USER == 0) {
            f->last_error[0] = '\0';
            change(f, BUS_REQUESTS_MAX + i);
            assert_string_equal(f->last_error, NUMAPLACE_ERROR_LIMIT);
            f->uid++;
        }
        f->last_error[0] = '\0';
        change(f, i / BUS_REQUESTS_MAX_PER_CALLER);
        assert_string_equal(f->last_error, "");
        assert_int_equal(f->requests.n, i + 1);
    }
    f->uid++;
    change(f, BUS_REQUESTS_MAX);
    assert_string_equal(f->last_error, NUMAPLACE_ERROR_LIMIT);
    assert_int_equal(f->n_changes, 0);
}

static void test_requests_end_with_the_connection(void **state)
{
    Fixture *f = *state;

    f->bus = ANSWER_NEVER;
    change(f, 1);
    f->bus = ANSWER_NO;
    f->polkit = ANSWER_NEVER;
    change(f, 2);
    assert_int_equal(f->requests.n, 2);
    sd_bus_close(f->world);
    settle(f);
    assert_int_equal(f->requests.n, 0);
    assert_int_equal(f->n_changes, 0);
}

static void test_private_connections(void **state)
{
    CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
    CLEANUP(sd_bus_message_unrefp) sd_bus_message *call = NULL;
    Fixture *f = *state;
    BusPeer peer = {.uid = geteuid()};

    assert_true(sd_bus_message_new_method_call(f->daemon, &call, NULL, PATH, INTERFACE, "Change") >= 0);
    assert_true(bus_authorize(call, &peer, NUMAPLACE_ACTION_MANAGE, "", method_change, &error) > 0);
    peer.uid = 0;
    assert_true(bus_authorize(call, &peer, NUMAPLACE_ACTION_MANAGE, "", method_change, &error) > 0);
    peer.uid = geteuid() + 1;
    assert_true(bus_authorize(call, &peer, NUMAPLACE_ACTION_MANAGE, "", method_change, &error) < 0);
    assert_true(sd_bus_error_has_name(&error, NUMAPLACE_ERROR_NOT_PERMITTED));
}

TEST_MAIN(setup, teardown, test_root_may, test_the_user_of_the_daemon_may, test_whom_polkit_lets_may,
          test_others_may_not, test_the_error_of_a_granted_change_is_answered,
          test_a_caller_that_is_gone_is_forgotten, test_waiting_is_limited,
          test_requests_end_with_the_connection, test_private_connections)
