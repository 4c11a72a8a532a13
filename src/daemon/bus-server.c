/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Nothing here waits: sockets are non-blocking, sd-bus queues what cannot be sent, and a queue that grows
 * ends the client. A client cannot be freed inside its own callback, so ended ones are marked and reaped by a
 * deferred event.
 *
 * The weak place: sd-bus takes messages of up to 128 MiB from anyone and offers no way to lower that; the
 * memory is only reserved until the bytes arrive. Limits on clients bound it, MemoryMax= of the unit bounds
 * it for good. */

#include "daemon/bus-server.h"

#include "daemon/bus-connection.h"
#include "numaplace/messages.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* Connections that wait to be admitted or turned away. When there is no room for one more, connecting fails at once, for the
 * administrator too; a thousand are dealt with in some 50 ms. */
#define BACKLOG 1024

typedef struct BusClient BusClient;

struct BusClient {
    BusServer *server;
    BusPeer peer;
    sd_bus *bus;
    bool dead;
    BusClient *next;
};

struct BusServer {
    sd_event *event;
    Log *log;
    char *path;
    int fd;
    sd_event_source *listen_source;
    sd_event_source *reap_source;
    BusAddObjects add;
    void *userdata;
    BusClient *clients;
    BusServerStatistics statistics;
};

const BusServerStatistics *bus_server_statistics(const BusServer *server)
{
    return &server->statistics;
}

static BusClient *client_free(BusClient *client)
{
    if (!client)
        return NULL;
    (void)bus_connection_end(client->bus);
    free(client);
    return NULL;
}

DEFINE_CLEANUP(BusClient *, client_free)

static void client_end(BusClient *client)
{
    if (client->dead)
        return;
    client->dead = true;
    (void)sd_event_source_set_enabled(client->server->reap_source, SD_EVENT_ONESHOT);
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

/* Ends a client with more than `limit` unread messages. Returns whether it did. */
static bool client_is_stuck(BusClient *client, uint64_t limit)
{
    uint64_t n = 0;

    if (client->dead)
        return true;
    if (sd_bus_get_n_queued_write(client->bus, &n) < 0 || n <= limit)
        return false;
    client->server->statistics.n_disconnected++;
    log_notice(client->server->log, NUMAPLACE_MESSAGE_LIMIT,
               "a client of user %u left %llu messages unread, disconnecting it", (unsigned)client->peer.uid,
               (unsigned long long)n);
    client_end(client);
    return true;
}

/* Looks at every message before the vtable does. */
static int on_message(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    return client_is_stuck(userdata, BUS_SERVER_REQUESTS_UNREAD_MAX) ? 1 : 0;
}

static int client_start(BusClient *client, int *fd)
{
    BusServer *server = client->server;
    const BusConnection connection = {
        .on_message = on_message,
        .on_disconnected = on_disconnected,
        .userdata = client,
        .add = server->add,
        .peer = &client->peer,
    };
    sd_id128_t id;
    int r;

    r = sd_bus_new(&client->bus);
    if (r < 0)
        return r;
    r = sd_bus_set_fd(client->bus, *fd, *fd);
    if (r < 0)
        return r;
    *fd = -1; /* the bus owns it now */
    r = sd_id128_randomize(&id);
    if (r < 0)
        return r;
    r = sd_bus_set_server(client->bus, 1, id);
    if (r < 0)
        return r;
    /* Who it is was asked of the socket; the D-Bus handshake need not prove it again. */
    r = sd_bus_set_anonymous(client->bus, 1);
    if (r < 0)
        return r;
    r = sd_bus_start(client->bus);
    if (r < 0)
        return r;
    r = bus_connection_serve(client->bus, &connection);
    return r < 0 ? r : bus_connection_attach(client->bus, server->event);
}

static bool client_may_enter(const BusServer *server, uid_t uid)
{
    uint32_t n_user = 0;

    if (uid == 0)
        return server->statistics.n_clients < BUS_SERVER_CLIENTS_MAX;
    for (const BusClient *c = server->clients; c; c = c->next)
        n_user += c->peer.uid == uid;
    return n_user < BUS_SERVER_CLIENTS_PER_USER &&
           server->statistics.n_clients < BUS_SERVER_CLIENTS_MAX - BUS_SERVER_CLIENTS_FOR_ROOT;
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
        /* Said once per storm: the counter has the rest. */
        if (server->statistics.n_refused++ % 1000 == 0)
            log_notice(server->log, NUMAPLACE_MESSAGE_LIMIT,
                       "too many clients (%u, user %u), refusing another one", server->statistics.n_clients,
                       (unsigned)cred.uid);
        return 0;
    }

    client = calloc(1, sizeof(*client));
    if (!client)
        return -ENOMEM;
    client->server = server;
    client->peer = (BusPeer){.userdata = server->userdata, .uid = cred.uid};
    r = client_start(client, fd);
    if (r < 0)
        return r;

    client->next = server->clients;
    server->clients = client;
    client = NULL;
    server->statistics.n_clients++;
    return 0;
}

static int on_connection(sd_event_source *source, int listen_fd, uint32_t revents, void *userdata)
{
    BusServer *server = userdata;
    CLEANUP_CLOSE int fd = accept4(listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    int r;

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE)
            log_warning(server->log, NUMAPLACE_MESSAGE_LIMIT, "no descriptor left for a client: %s",
                        strerror(errno));
        return 0; /* it went away, or will be tried again */
    }
    r = server_admit(server, &fd);
    if (r < 0)
        log_warning(server->log, NULL, "cannot serve a client: %s", strerror(-r));
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
    server->path = strdup(path);
    if (!server->path)
        return -ENOMEM;

    r = sd_event_add_defer(event, &server->reap_source, on_reap, server);
    if (r < 0)
        return r;
    r = sd_event_source_set_enabled(server->reap_source, SD_EVENT_OFF);
    if (r < 0)
        return r;
    r = server_listen(server);
    if (r < 0)
        return r;
    r = sd_event_add_io(event, &server->listen_source, server->fd, EPOLLIN, on_connection, server);
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
        if (client_is_stuck(client, BUS_SERVER_UNREAD_MAX))
            continue;
        /* Not connected yet, or no longer: such a client asks ListMoves for what it missed. */
        if (sd_bus_is_ready(client->bus) > 0)
            tell(client->bus, userdata);
    }
}
