/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Nothing here waits: sockets are non-blocking, and daemon/bus/turns.h decides which client is served when. A
 * client cannot be freed inside its own callback, so ended ones are marked and reaped by a deferred event.
 *
 * What a client can make the daemon keep is limited:
 *
 *   what it sends       one message of 16 KiB, or a handshake (daemon/bus/framing.h); the rest waits in its socket
 *   answers             one: until it is read, nothing more is read. The longest has NUMAPLACE_BUS_PAGE_MAX rows
 *   signals             BUS_SERVER_UNREAD_MAX
 *   socket buffers      SOCKET_BYTES; sd-bus would have 8 MiB
 *
 * That is some 700 KiB for a hostile client, until it is disconnected after PATIENCE_USEC. One user can have
 * a quarter of the clients, and so take 200 MiB; MemoryMax= of the unit allows for more.
 *
 * sd-bus reads from a socket pair instead of the client's socket. That costs three system calls for up to 4
 * KiB of calls, some 3 us. It makes possible what sd-bus has no setting for: limiting the length of messages,
 * and not reading while answers are unread; what is not read stays in the client's own socket buffer.
 * Credentials are read from the client's socket: those of the pair are the daemon's own. */

#include "daemon/bus/server.h"

#include "base/time.h"
#include "daemon/bus/connection.h"
#include "daemon/bus/framing.h"
#include "daemon/bus/turns.h"
#include "numaplace/messages.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <utlist.h>

/* Connections that wait to be accepted; by default net.core.somaxconn allows no more. When the queue is full,
 * connecting fails at once, also for the administrator. Accepting a thousand takes some 50 ms. */
#define BACKLOG 4096
/* Connections accepted before the loop looks at ticks and at admitted clients: some 2 ms. */
#define ACCEPT_MAX 32

/* Time for a handshake, and to read answers: plenty for any willing program on any machine. */
#define PATIENCE_USEC (30 * USEC_PER_SEC)
/* Requested; the kernel doubles it. Holds the answers to some twenty GetStatus. */
#define SOCKET_BYTES (64 * 1024)

/* Bytes passed on to sd-bus at a time. */
#define PASS_BYTES 4096U

/* The client's socket, and the two ends of the pair. */
#define DESCRIPTORS_PER_CLIENT 3U

typedef struct BusClient BusClient;

struct BusClient {
    BusServer *server;
    BusPeer peer;
    sd_bus *bus;
    int fd;      /* its socket, which the bus owns */
    int pass_fd; /* what is read from `fd` is written here for sd-bus; -1: none */
    BusFraming framing;
    BusTurn turn;
    bool drained; /* sd-bus has read all that was passed on */
    bool dead;
    bool waits; /* on server->waiting */
    uint64_t waits_usec;
    BusClient *wait_prev, *wait_next;
    BusClient *next; /* on server->clients */
};

struct BusServer {
    sd_event *event;
    Log *log;
    char *path;
    int fd;
    int spare_fd; /* closed to turn a connection away when there is no other descriptor */
    sd_event_source *listen_source;
    sd_event_source *reap_source;
    sd_event_source *patience_source;
    BusAddObjects add;
    void *userdata;
    BusTurns *turns;
    BusClient *clients;
    BusClient *waiting; /* without handshake or with unread answers, the longest first */
    BusServerStatistics statistics;
};

const BusServerStatistics *bus_server_statistics(const BusServer *server)
{
    return &server->statistics;
}

static uint32_t clients_max(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return BUS_SERVER_CLIENTS_MAX;
    return (uint32_t)MIN(limit.rlim_cur / 4 / DESCRIPTORS_PER_CLIENT, BUS_SERVER_CLIENTS_MAX);
}

uint32_t bus_server_descriptors_max(void)
{
    return clients_max() * DESCRIPTORS_PER_CLIENT;
}

static BusClient *client_free(BusClient *client)
{
    if (!client)
        return NULL;
    bus_turns_remove(client->server->turns, &client->turn);
    close_p(&client->pass_fd);
    (void)bus_connection_end(client->bus);
    free(client);
    return NULL;
}

DEFINE_CLEANUP(BusClient *, client_free)

/* Messages the client has not read, beyond what its socket holds. */
static uint64_t client_unread(const BusClient *client)
{
    uint64_t n = 0;

    return sd_bus_get_n_queued_write(client->bus, &n) < 0 ? 0 : n;
}

static void client_stop_waiting(BusClient *client)
{
    BusServer *server = client->server;

    if (client->waits)
        DL_DELETE2(server->waiting, client, wait_prev, wait_next);
    client->waits = false;
}

static void client_end(BusClient *client)
{
    if (client->dead)
        return;
    client->dead = true;
    client_stop_waiting(client);
    bus_turns_remove(client->server->turns, &client->turn);
    (void)sd_event_source_set_enabled(client->server->reap_source, SD_EVENT_ONESHOT);
}

/* Disconnects a misbehaving client. Only the first of each thousand is logged; the counter has all. */
static void client_disconnect(BusClient *client, const char *why)
{
    BusServer *server = client->server;

    if (server->statistics.n_disconnected++ % 1000 == 0)
        log_notice(server->log, NUMAPLACE_MESSAGE_LIMIT, "disconnecting a client of user %u: %s",
                   (unsigned)client->peer.uid, why);
    client_end(client);
}

static void server_arm_patience(BusServer *server)
{
    if (!server->waiting)
        return;
    (void)sd_event_source_set_time(server->patience_source, server->waiting->waits_usec + PATIENCE_USEC);
    (void)sd_event_source_set_enabled(server->patience_source, SD_EVENT_ONESHOT);
}

static int on_patience(sd_event_source *source, uint64_t usec, void *userdata)
{
    BusServer *server = userdata;
    uint64_t now = time_now_usec();

    while (server->waiting && server->waiting->waits_usec + PATIENCE_USEC <= now)
        client_disconnect(server->waiting, client_unread(server->waiting) > 0
                                               ? "it does not read"
                                               : "it does not complete the handshake");
    server_arm_patience(server);
    return 0;
}

/* Notes whether the server now waits for this client. */
static void client_note(BusClient *client)
{
    BusServer *server = client->server;

    if (client->dead)
        return;
    if (client_unread(client) == 0 && sd_bus_is_ready(client->bus) > 0) {
        client_stop_waiting(client);
        return;
    }
    if (client->waits)
        return;
    client->waits = true;
    client->waits_usec = time_now_usec();
    DL_APPEND2(server->waiting, client, wait_prev, wait_next);
    if (server->waiting == client)
        server_arm_patience(server);
}

static int on_reap(sd_event_source *source, void *userdata)
{
    BusServer *server = userdata;
    BusClient **p = &server->clients;

    while (*p) {
        BusClient *client = *p;

        if (!client->dead) {
            p = &client->next;
            continue;
        }
        *p = client->next;
        server->statistics.n_clients--;
        (void)client_free(client);
    }
    return 0;
}

static int on_disconnected(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    client_end(userdata);
    return 0;
}

/* Messages passed on before the client was ended do not reach the objects. */
static int on_message(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    const BusClient *client = userdata;

    return client->dead ? 1 : 0;
}

static void client_failed(BusClient *client, int error)
{
    if (error == -EMSGSIZE)
        client_disconnect(client, "it sends a message that is too long");
    else
        client_end(client);
}

/* Reads some bytes of acceptable messages, or of the handshake and nothing after it. Returns their number; 0: none
 * now; -ECONNRESET: the client hung up; as bus_framing_take(); or another -errno. */
static ssize_t client_read(BusClient *client, uint8_t bytes[static PASS_BYTES])
{
    size_t n = 0;
    int r;

    do {
        size_t ahead = MIN(PASS_BYTES - n, (size_t)bus_framing_ahead(&client->framing));
        ssize_t n_read = recv(client->fd, bytes + n, ahead, MSG_DONTWAIT);

        if (n_read < 0 && errno != EAGAIN && errno != EINTR)
            return -errno;
        if (n_read <= 0 && n > 0)
            break;
        if (n_read <= 0)
            return n_read < 0 ? 0 : -ECONNRESET;
        r = bus_framing_take(&client->framing, bytes + n, (size_t)n_read);
        if (r < 0)
            return r;
        n += (size_t)n_read;
    } while (!client->framing.begun && n < PASS_BYTES);
    return (ssize_t)n;
}

/* Passes on some bytes; those passed on before must have been read. Returns >0: some; or as client_read(). */
static int client_pass(BusClient *client)
{
    uint8_t bytes[PASS_BYTES];
    ssize_t n, n_passed;

    /* A BEGIN without authentication is an error to sd-bus, which then expects more of the handshake. What is taken
     * for messages here would be something else there. */
    if (client->framing.begun && sd_bus_is_ready(client->bus) <= 0)
        return -EBADMSG;
    n = client_read(client, bytes);
    if (n <= 0)
        return (int)n;
    /* The pair was empty, so this little always fits. */
    n_passed = send(client->pass_fd, bytes, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n_passed < 0)
        return -errno;
    return n_passed == n ? 1 : -EIO;
}

/* A turn: passes on bytes if the last ones were read and their answers taken, and serves one message. */
static bool client_serve(BusTurn *turn)
{
    BusClient *client = (BusClient *)((char *)turn - offsetof(BusClient, turn));
    bool may_pass = client->drained && client_unread(client) == 0;
    int n_passed = may_pass ? client_pass(client) : 0, n_done;

    if (n_passed < 0) {
        client_failed(client, n_passed);
        return false;
    }
    n_done = sd_bus_process(client->bus, NULL);
    if (n_done < 0) {
        client_failed(client, n_done);
        return false;
    }
    client->drained = n_done == 0;
    client_note(client);
    /* A client with unread answers is served again when its socket has room; they are written then. */
    return n_done > 0 || n_passed > 0 || (!may_pass && client_unread(client) == 0);
}

static int client_start(BusClient *client, int *fd)
{
    BusServer *server = client->server;
    const int bytes = SOCKET_BYTES;
    int pair[2] = {-1, -1};
    sd_id128_t id;
    int r = sd_bus_new(&client->bus);

    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        return -errno;
    client->fd = *fd;
    client->pass_fd = pair[0];
    r = sd_bus_set_fd(client->bus, pair[1], client->fd);
    if (r < 0) {
        close_p(&pair[1]);
        return r;
    }
    *fd = -1; /* the bus owns both now */
    r = sd_id128_randomize(&id);
    if (r >= 0)
        r = sd_bus_set_server(client->bus, 1, id);
    /* The socket has told which user it is; the D-Bus handshake need not prove it again. */
    if (r >= 0)
        r = sd_bus_set_anonymous(client->bus, 1);
    if (r >= 0)
        r = sd_bus_start(client->bus);
    if (r < 0)
        return r;
    if (setsockopt(client->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) < 0)
        return -errno;
    r = bus_connection_serve(client->bus, on_message, on_disconnected, client, server->add, &client->peer);
    return r < 0 ? r : bus_turns_add(server->turns, &client->turn, client->fd);
}

static bool client_may_enter(const BusServer *server, uid_t uid)
{
    uint32_t n = server->statistics.n_clients, max = server->statistics.clients_max, n_user = 0;

    if (uid == 0 || uid == geteuid())
        return n < max;
    for (const BusClient *c = server->clients; c; c = c->next)
        n_user += c->peer.uid == uid;
    return n_user < max / BUS_SERVER_SHARE_OF_USER && n < max - max / BUS_SERVER_SHARE_OF_ROOT;
}

static void server_refuse(BusServer *server, const char *why)
{
    if (server->statistics.n_refused++ % 1000 == 0)
        log_notice(server->log, NUMAPLACE_MESSAGE_LIMIT, "%s (%u are served), refusing another one", why,
                   server->statistics.n_clients);
}

static int server_admit(BusServer *server, int *fd)
{
    CLEANUP(client_free_p) BusClient *client = NULL;
    struct ucred cred;
    socklen_t len = sizeof(cred);
    int r;

    if (getsockopt(*fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
        return -errno;
    if (!client_may_enter(server, cred.uid)) {
        server_refuse(server, "too many clients");
        return 0;
    }

    client = calloc(1, sizeof(*client));
    if (!client)
        return -ENOMEM;
    client->server = server;
    client->pass_fd = client->turn.fd = -1;
    client->peer = (BusPeer){.userdata = server->userdata, .uid = cred.uid};
    r = client_start(client, fd);
    if (r < 0)
        return r;

    client->next = server->clients;
    server->clients = client;
    server->statistics.n_clients++;
    client_note(client);
    client = NULL;
    return 0;
}

/* Without a descriptor no connection can be accepted, and a waiting one wakes the loop for ever. So a spare
 * descriptor is closed for a moment to turn it away. */
static void server_refuse_unopened(BusServer *server)
{
    int fd;

    close_p(&server->spare_fd);
    fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    close_p(&fd);
    server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    server_refuse(server, "no descriptor is left for a client");
}

/* Accepts one connection. Returns whether there may be more. */
static bool server_accept(BusServer *server)
{
    CLEANUP_CLOSE int fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int r;

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE)
            server_refuse_unopened(server);
        return false; /* it went away, or will be tried again */
    }
    r = server_admit(server, &fd);
    if (r == -EMFILE || r == -ENFILE)
        server_refuse(server, "no descriptor is left for a client");
    else if (r < 0)
        log_warning(server->log, NULL, "cannot serve a client: %s", strerror(-r));
    return true;
}

static int on_connection(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    for (int i = 0; i < ACCEPT_MAX && server_accept(userdata); i++)
        ;
    return 0;
}

static int server_listen(BusServer *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CLEANUP_CLOSE int fd = -1;

    if (strlen(server->path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    (void)strcpy(address.sun_path, server->path); /* NOLINT: length checked above */

    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (unlink(server->path) < 0 && errno != ENOENT)
        return -errno;
    if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    if (chmod(server->path, 0666) < 0 || listen(fd, BACKLOG) < 0) {
        int error = errno;

        (void)unlink(server->path);
        return -error;
    }
    server->fd = TAKE_FD(fd);
    return 0;
}

static int server_add_sources(BusServer *server)
{
    int r = sd_event_add_defer(server->event, &server->reap_source, on_reap, server);

    if (r >= 0)
        r = sd_event_source_set_enabled(server->reap_source, SD_EVENT_OFF);
    if (r >= 0)
        r = sd_event_add_time(server->event, &server->patience_source, CLOCK_MONOTONIC, 0, 0, on_patience,
                              server);
    if (r >= 0)
        r = sd_event_source_set_enabled(server->patience_source, SD_EVENT_OFF);
    return r < 0 ? r
                 : sd_event_add_io(server->event, &server->listen_source, server->fd, EPOLLIN, on_connection,
                                   server);
}

int bus_server_new(sd_event *event, Log *log, const char *path, BusAddObjects add, void *userdata,
                   BusServer **ret)
{
    CLEANUP(bus_server_free_p) BusServer *server = calloc(1, sizeof(*server));
    int r;

    if (!server)
        return -ENOMEM;
    server->fd = -1;
    server->event = sd_event_ref(event);
    server->log = log;
    server->add = add;
    server->userdata = userdata;
    server->statistics.clients_max = clients_max();
    server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* works without it, too */
    server->path = strdup(path);
    if (!server->path)
        return -ENOMEM;
    r = bus_turns_new(event, client_serve, &server->turns);
    if (r >= 0)
        r = server_listen(server);
    if (r >= 0)
        r = server_add_sources(server);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(server);
    return 0;
}

BusServer *bus_server_free(BusServer *server)
{
    if (!server)
        return NULL;
    while (server->clients) {
        BusClient *client = server->clients;

        server->clients = client->next;
        (void)client_free(client);
    }
    sd_event_source_disable_unref(server->listen_source);
    sd_event_source_disable_unref(server->reap_source);
    sd_event_source_disable_unref(server->patience_source);
    bus_turns_free(server->turns);
    close_p(&server->spare_fd);
    if (server->fd >= 0) {
        (void)unlink(server->path);
        (void)close(server->fd);
    }
    sd_event_unref(server->event);
    free(server->path);
    free(server);
    return NULL;
}

void bus_server_tell(BusServer *server, BusTell tell, void *userdata)
{
    for (BusClient *client = server->clients; client; client = client->next) {
        /* Not connected yet, or no longer: such a client asks ListMoves for what it missed. */
        if (client->dead || sd_bus_is_ready(client->bus) <= 0)
            continue;
        if (client_unread(client) > BUS_SERVER_UNREAD_MAX) {
            client_disconnect(client, "it does not read signals");
            continue;
        }
        tell(client->bus, userdata);
        client_note(client);
    }
}
