/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The private socket: many clients, silent clients, clients that ask and never read. A vtable of its own
 * stands in for the manager's. */

#include "daemon-test.h"
#include "daemon/bus-server.h"
#include "numaplace/bus.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static int method_get_status(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    const BusPeer *peer = userdata;
    int *n_calls = peer->userdata;
    char text[4096];

    assert_int_equal(peer->uid, geteuid());
    assert_null(peer->requests);
    (*n_calls)++;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    return sd_bus_reply_method_return(message, "s", text);
}

static const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("GetStatus", "", "s", method_get_status, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_SIGNAL("Moved", "s", 0),
    SD_BUS_VTABLE_END,
};

static int add_objects(sd_bus *bus, BusPeer *peer)
{
    return sd_bus_add_object_vtable(bus, NULL, NUMAPLACE_BUS_PATH, NUMAPLACE_BUS_INTERFACE_MANAGER, vtable,
                                    peer);
}

typedef struct Fixture {
    sd_event *event;
    Log log;
    BusServer *server;
    char directory[64];
    char path[128];
    int n_calls;
} Fixture;

static int setup(void **state)
{
    Fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->log.level = LOG_EMERG;
    (void)strcpy(f->directory, "/tmp/test-bus-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    (void)snprintf(f->path, sizeof(f->path), "%s/bus", f->directory);
    assert_true(sd_event_new(&f->event) >= 0);
    assert_int_equal(bus_server_new(f->event, &f->log, f->path, add_objects, &f->n_calls, &f->server), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    Fixture *f = *state;

    bus_server_free(f->server);
    sd_event_unref(f->event);
    assert_int_equal(access(f->path, F_OK), -1); /* the socket is removed */
    assert_int_equal(rmdir(f->directory), 0);
    free(f);
    return 0;
}

/* Runs the loop until nothing is left to do. */
static void settle(Fixture *f)
{
    while (sd_event_run(f->event, 0) > 0)
        ;
}

static int connect_raw(Fixture *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    (void)strcpy(address.sun_path, f->path);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* A connected client on the same event loop. */
static sd_bus *connect_bus(Fixture *f)
{
    char address[160];
    sd_bus *bus = NULL;

    (void)snprintf(address, sizeof(address), "unix:path=%s", f->path);
    assert_true(sd_bus_new(&bus) >= 0);
    assert_true(sd_bus_set_address(bus, address) >= 0);
    assert_true(sd_bus_start(bus) >= 0);
    assert_true(sd_bus_attach_event(bus, f->event, 0) >= 0);
    settle(f);
    return bus;
}

static void send_call(sd_bus *bus)
{
    assert_true(sd_bus_call_method_async(bus, NULL, NULL, NUMAPLACE_BUS_PATH, NUMAPLACE_BUS_INTERFACE_MANAGER,
                                         "GetStatus", NULL, NULL, "") >= 0);
}

static int count_signal(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    const char *text;

    assert_true(sd_bus_message_read(message, "s", &text) >= 0);
    assert_string_equal(text, "hello");
    (*(int *)userdata)++;
    return 0;
}

static void tell_hello(sd_bus *bus, void *userdata)
{
    (void)sd_bus_emit_signal(bus, NUMAPLACE_BUS_PATH, NUMAPLACE_BUS_INTERFACE_MANAGER, "Moved", "s", "hello");
}

static void emit(Fixture *f)
{
    bus_server_tell(f->server, tell_hello, NULL);
}

static void test_call_and_hang_up(void **state)
{
    Fixture *f = *state;
    sd_bus *bus = connect_bus(f);

    assert_int_equal(bus_server_statistics(f->server)->n_clients, 1);
    send_call(bus);
    settle(f);
    assert_int_equal(f->n_calls, 1);
    sd_bus_close(bus);
    sd_bus_unref(bus);
    settle(f);
    assert_int_equal(bus_server_statistics(f->server)->n_clients, 0);
}

static void test_signal_reaches_every_client(void **state)
{
    Fixture *f = *state;
    sd_bus *a = connect_bus(f), *b = connect_bus(f);
    int n_a = 0, n_b = 0;

    assert_true(sd_bus_match_signal(a, NULL, NULL, NUMAPLACE_BUS_PATH, NUMAPLACE_BUS_INTERFACE_MANAGER,
                                    "Moved", count_signal, &n_a) >= 0);
    assert_true(sd_bus_match_signal(b, NULL, NULL, NUMAPLACE_BUS_PATH, NUMAPLACE_BUS_INTERFACE_MANAGER,
                                    "Moved", count_signal, &n_b) >= 0);
    emit(f);
    settle(f);
    assert_int_equal(n_a, 1);
    assert_int_equal(n_b, 1);
    sd_bus_close(a);
    sd_bus_unref(a);
    settle(f);
    emit(f);
    settle(f);
    assert_int_equal(n_b, 2);
    sd_bus_close(b);
    sd_bus_unref(b);
}

/* Connections that say nothing, or nonsense, take a place but hold nobody up. */
static void test_limit_of_clients(void **state)
{
    Fixture *f = *state;
    unsigned limit = geteuid() == 0 ? BUS_SERVER_CLIENTS_MAX : BUS_SERVER_CLIENTS_PER_USER;
    int fds[BUS_SERVER_CLIENTS_MAX + 10];
    sd_bus *bus;

    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = connect_raw(f);
        if (i % 3 == 0)
            assert_true(write(fds[i], "\0nonsense\r\n\xff\xff\xff\xff", 15) == 15);
        settle(f);
    }
    assert_true(bus_server_statistics(f->server)->n_clients <= limit);
    assert_true(bus_server_statistics(f->server)->n_refused > 0);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        assert_int_equal(close(fds[i]), 0);
    settle(f);
    assert_int_equal(bus_server_statistics(f->server)->n_clients, 0);

    bus = connect_bus(f);
    send_call(bus);
    settle(f);
    assert_int_equal(f->n_calls, 1);
    sd_bus_close(bus);
    sd_bus_unref(bus);
}

/* Handshake by hand, so that nothing is read afterwards. */
static int connect_deaf(Fixture *f)
{
    static const char hello[] = "\0AUTH ANONYMOUS\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n";
    int fd = connect_raw(f);

    assert_int_equal(write(fd, hello, sizeof(hello) - 1), sizeof(hello) - 1);
    settle(f);
    return fd;
}

static void test_a_client_that_does_not_read_signals_is_ended(void **state)
{
    Fixture *f = *state;
    int fd = connect_deaf(f);
    uint64_t n = 0;

    assert_int_equal(bus_server_statistics(f->server)->n_clients, 1);
    /* The socket's own buffer takes some hundreds first. */
    for (; n < 100000 && bus_server_statistics(f->server)->n_disconnected == 0; n++)
        emit(f);
    settle(f);
    assert_int_equal(bus_server_statistics(f->server)->n_disconnected, 1);
    assert_int_equal(bus_server_statistics(f->server)->n_clients, 0);
    assert_int_equal(close(fd), 0);
}

/* The same call again and again, written by hand. */
static void test_a_client_that_asks_without_reading_is_ended(void **state)
{
    Fixture *f = *state;
    int fd = connect_deaf(f);
    /* Little endian, method call, version 1; no body; serial 1; 79 bytes of fields: path, member, interface.
     */
    static const char raw[96] = "l\1\0\1\0\0\0\0\1\0\0\0\117\0\0\0"
                                "\1\1o\0\17\0\0\0/org/numaplace1\0"
                                "\3\1s\0\11\0\0\0GetStatus\0\0\0\0\0\0\0"
                                "\2\1s\0\26\0\0\0org.numaplace1.Manager\0";

    for (int i = 0; i < 100000 && bus_server_statistics(f->server)->n_disconnected == 0; i++) {
        if (send(fd, raw, sizeof(raw), MSG_NOSIGNAL) < 0)
            assert_true(errno == EPIPE || errno == EAGAIN);
        settle(f);
    }
    assert_int_equal(bus_server_statistics(f->server)->n_disconnected, 1);
    assert_int_equal(bus_server_statistics(f->server)->n_clients, 0);
    assert_true(f->n_calls > 64);
    assert_int_equal(close(fd), 0);
}

static void test_a_path_that_does_not_fit(void **state)
{
    Fixture *f = *state;
    BusServer *server = NULL;
    char path[300];

    memset(path, 'x', sizeof(path) - 1);
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(bus_server_new(f->event, &f->log, path, add_objects, f, &server), -ENAMETOOLONG);
    assert_null(server);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_call_and_hang_up),
        TEST(test_signal_reaches_every_client),
        TEST(test_limit_of_clients),
        TEST(test_a_client_that_does_not_read_signals_is_ended),
        TEST(test_a_client_that_asks_without_reading_is_ended),
        TEST(test_a_path_that_does_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
