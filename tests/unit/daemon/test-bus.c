/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The private socket: many clients, silent clients, clients that send requests and never read, or all at
 * once. A vtable of the test stands in for the manager's. */

#include "daemon/bus/server.h"
#include "numaplace/bus.h"
#include "unit-test.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* Descriptors that this program may have, and the clients that follow from it. */
#define N_FILES   1024U
#define N_CLIENTS (N_FILES / 4 / 3)

typedef struct Fixture {
    sd_event *event;
    Log log;
    BusServer *server;
    char directory[64];
    char path[128];
    int n_calls;         /* of GetStatus */
    int n_calls_at_list; /* when ListCpus was called */
} Fixture;

static int method_list_cpus(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    const BusPeer *peer = userdata;
    Fixture *f = peer->userdata;

    f->n_calls_at_list = f->n_calls;
    return sd_bus_reply_method_return(message, "");
}

static int method_get_status(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    const BusPeer *peer = userdata;
    Fixture *f = peer->userdata;
    char text[4096];

    assert_int_equal(peer->uid, geteuid());
    assert_null(peer->requests);
    f->n_calls++;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    return sd_bus_reply_method_return(message, "s", text);
}

static const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("GetStatus", "", "s", method_get_status, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("ListCpus", "", "", method_list_cpus, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_SIGNAL("Moved", "s", 0),
    SD_BUS_VTABLE_END,
};

static int add_objects(sd_bus *bus, BusPeer *peer)
{
    return sd_bus_add_object_vtable(bus, NULL, NUMAPLACE_BUS_PATH, NUMAPLACE_BUS_INTERFACE_MANAGER, vtable,
                                    peer);
}

static int setup(void **state)
{
    Fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->log.level = LOG_EMERG;
    (void)strcpy(f->directory, "/tmp/test-bus-XXXXXX");
    assert_non_null(mkdtemp(f->directory));
    assert_int_equal(chmod(f->directory, 0755), 0);
    (void)snprintf(f->path, sizeof(f->path), "%s/bus", f->directory);
    assert_true(sd_event_new(&f->event) >= 0);
    assert_int_equal(bus_server_new(f->event, &f->log, f->path, add_objects, f, &f->server), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    CLEANUP_FREE Fixture *f = *state;

    bus_server_free(f->server);
    sd_event_unref(f->event);
    assert_int_equal(access(f->path, F_OK), -1); /* the socket is removed */
    assert_int_equal(rmdir(f->directory), 0);
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

static void send_method(sd_bus *bus, const char *method)
{
    assert_true(sd_bus_call_method_async(bus, NULL, NULL, NUMAPLACE_BUS_PATH, NUMAPLACE_BUS_INTERFACE_MANAGER,
                                         method, NULL, NULL, "") >= 0);
}

static void send_call(sd_bus *bus)
{
    send_method(bus, "GetStatus");
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
    sd_bus_close_unref(bus);
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
    sd_bus_close_unref(a);
    settle(f);
    emit(f);
    settle(f);
    assert_int_equal(n_b, 2);
    sd_bus_close_unref(b);
}

/* Connections that send nothing, or nonsense, take a place but delay no other client. */
static void test_limit_of_clients(void **state)
{
    Fixture *f = *state;
    int fds[N_CLIENTS + 10];
    sd_bus *bus;

    assert_int_equal(bus_server_statistics(f->server)->clients_max, N_CLIENTS);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        fds[i] = connect_raw(f);
        if (i % 3 == 0)
            assert_true(write(fds[i], "\0nonsense\r\n\xff\xff\xff\xff", 15) == 15);
        settle(f);
    }
    assert_true(bus_server_statistics(f->server)->n_clients <= N_CLIENTS);
    assert_true(bus_server_statistics(f->server)->n_clients > N_CLIENTS / 2);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        assert_int_equal(close(fds[i]), 0);
    settle(f);
    assert_int_equal(bus_server_statistics(f->server)->n_clients, 0);

    bus = connect_bus(f);
    send_call(bus);
    settle(f);
    assert_int_equal(f->n_calls, 1);
    sd_bus_close_unref(bus);
}

static void test_one_more_than_the_limit_is_turned_away(void **state)
{
    Fixture *f = *state;
    int fds[N_CLIENTS + 1];
    char byte;

    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        assert_int_equal(bus_server_statistics(f->server)->n_refused, 0);
        fds[i] = connect_raw(f);
        settle(f);
    }
    assert_int_equal(bus_server_statistics(f->server)->n_clients, N_CLIENTS);
    assert_int_equal(bus_server_statistics(f->server)->n_refused, 1);
    assert_int_equal(read(fds[N_CLIENTS], &byte, 1), 0);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        assert_int_equal(close(fds[i]), 0);
    settle(f);
}

/* Two users other than root. Root still gets in when both have all their connections. */
static void test_limit_of_a_user(void **state)
{
    Fixture *f = *state;
    const unsigned n_user = N_CLIENTS / BUS_SERVER_SHARE_OF_USER;
    int fds[2 * N_CLIENTS];
    sd_bus *bus;

    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        assert_int_equal(seteuid(i < N_CLIENTS ? 65533 : 65532), 0);
        fds[i] = connect_raw(f);
        assert_int_equal(seteuid(0), 0);
        settle(f);
        assert_int_equal(bus_server_statistics(f->server)->n_clients,
                         i < N_CLIENTS ? MIN(i + 1, n_user) : MIN(i + 1 - N_CLIENTS, n_user) + n_user);
    }
    bus = connect_bus(f);
    assert_int_equal(bus_server_statistics(f->server)->n_clients, 2 * n_user + 1);
    sd_bus_close_unref(bus);
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
        assert_int_equal(close(fds[i]), 0);
    settle(f);
}

/* A handshake by hand, so that nothing is read afterwards. */
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

/* GetStatus, written by hand: little endian, method call, version 1, no body, serial 1, 79 bytes of fields:
 * path, member, interface. */
static const char raw_call[96] = "l\1\0\1\0\0\0\0\1\0\0\0\117\0\0\0"
                                 "\1\1o\0\17\0\0\0/org/numaplace1\0"
                                 "\3\1s\0\11\0\0\0GetStatus\0\0\0\0\0\0\0"
                                 "\2\1s\0\26\0\0\0org.numaplace1.Manager\0";

static size_t read_all(int fd)
{
    char bytes[65536];
    size_t n_bytes = 0;

    for (ssize_t n = 1; n > 0; n_bytes += (size_t)MAX(n, 0))
        n = read(fd, bytes, sizeof(bytes));
    return n_bytes;
}

/* The client is not served any more, and costs nothing, until it reads. */
static void test_a_client_that_asks_without_reading_waits(void **state)
{
    Fixture *f = *state;
    int fd = connect_deaf(f), n_calls, n_sent = 0;

    while (send(fd, raw_call, sizeof(raw_call), MSG_NOSIGNAL) == sizeof(raw_call) && n_sent++ < 100000)
        settle(f);
    assert_int_equal(errno, EAGAIN);
    n_calls = f->n_calls;
    assert_in_range(n_calls, 2, n_sent - 1);
    assert_int_equal(bus_server_statistics(f->server)->n_clients, 1);
    for (int i = 0; i < 10000 && f->n_calls < n_sent; i++) {
        (void)read_all(fd);
        settle(f);
    }
    assert_int_equal(f->n_calls, n_sent);
    assert_int_equal(bus_server_statistics(f->server)->n_disconnected, 0);
    assert_int_equal(close(fd), 0);
    settle(f);
}

/* A turn is one message: a client with one request does not wait for one with many. */
static void test_turns(void **state)
{
    Fixture *f = *state;
    int fd = connect_deaf(f);
    sd_bus *bus = connect_bus(f);

    for (int i = 0; i < 30; i++)
        assert_int_equal(send(fd, raw_call, sizeof(raw_call), MSG_NOSIGNAL), sizeof(raw_call));
    send_method(bus, "ListCpus");
    settle(f);
    assert_in_range(f->n_calls_at_list, 0, 3);
    assert_true(f->n_calls > 10);
    sd_bus_close_unref(bus);
    assert_int_equal(close(fd), 0);
    settle(f);
}

/* Messages cut anywhere, one ending where the next one begins: none is lost, and none is handled twice. */
static void test_messages_in_pieces(void **state)
{
    Fixture *f = *state;
    int fd = connect_deaf(f), n_sent = 0;
    char bytes[20 * sizeof(raw_call)];

    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = raw_call[i % sizeof(raw_call)];
    (void)read_all(fd);
    for (size_t piece = 1; piece < 200; piece += 37)
        for (size_t at = 0; at < sizeof(bytes); at += piece) {
            size_t n = MIN(piece, sizeof(bytes) - at);

            assert_int_equal(send(fd, bytes + at, n, MSG_NOSIGNAL), n);
            settle(f);
            n_sent += at + n == sizeof(bytes) ? 20 : 0;
            assert_int_equal(f->n_calls, n_sent > 0 && at + n == sizeof(bytes) ? n_sent : f->n_calls);
            (void)read_all(fd);
        }
    assert_int_equal(f->n_calls, n_sent);
    assert_int_equal(close(fd), 0);
    settle(f);
}

/* The daemon does not wait for an announced message that is too long, let alone store it. */
static void test_a_message_that_is_too_long(void **state)
{
    Fixture *f = *state;
    int fd = connect_deaf(f);
    char head[sizeof(raw_call)];

    memcpy(head, raw_call, sizeof(head));
    head[6] = 1; /* a body of 65536 bytes */
    assert_int_equal(send(fd, head, sizeof(head), MSG_NOSIGNAL), sizeof(head));
    settle(f);
    assert_int_equal(bus_server_statistics(f->server)->n_disconnected, 1);
    assert_int_equal(bus_server_statistics(f->server)->n_clients, 0);
    assert_int_equal(close(fd), 0);
}

/* To a BEGIN before any authentication sd-bus answers "ERROR". A message of acceptable length would then hide the true
 * end of the handshake, and the head of a message of 64 MiB. */
static void test_a_handshake_with_two_ends(void **state)
{
    static const char hello[] = "\0X\r\nBEGIN\r\n";
    static const char hidden[] = "l\1\0\1\0\0\0\0\1\0\0\0\xf0\x3f\0\0"
                                 "\r\nAUTH ANONYMOUS 30\r\nBEGIN\r\n"
                                 "l\1\0\1\0\0\0\4\1\0\0\0\0\0\0\0";
    Fixture *f = *state;
    int fd = connect_raw(f);

    assert_int_equal(send(fd, hello, sizeof(hello) - 1, MSG_NOSIGNAL), sizeof(hello) - 1);
    assert_int_equal(send(fd, hidden, sizeof(hidden) - 1, MSG_NOSIGNAL), sizeof(hidden) - 1);
    settle(f);
    assert_int_equal(bus_server_statistics(f->server)->n_clients, 0);
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
        TEST(test_one_more_than_the_limit_is_turned_away),
        TEST(test_limit_of_a_user),
        TEST(test_a_client_that_does_not_read_signals_is_ended),
        TEST(test_a_client_that_asks_without_reading_waits),
        TEST(test_turns),
        TEST(test_messages_in_pieces),
        TEST(test_a_message_that_is_too_long),
        TEST(test_a_handshake_with_two_ends),
        TEST(test_a_path_that_does_not_fit),
    };

    const struct rlimit files = {N_FILES, N_FILES};

    if (setrlimit(RLIMIT_NOFILE, &files) < 0)
        return 1;
    if (geteuid() != 0) {
        (void)puts("# not run, since it needs root: test_limit_of_a_user");
        cmocka_set_skip_filter("test_limit_of_a_user");
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
