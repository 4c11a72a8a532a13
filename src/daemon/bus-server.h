/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The private socket: peer-to-peer D-Bus without a bus daemon. Each client is one sd_bus with the manager's
 * vtable. */

#include "base/util.h"
#include "daemon/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

/* Clients at once. The last ones are kept for root, and one user other than root gets only some, so that
 * nobody can lock the administrator out by connecting. */
#define BUS_SERVER_CLIENTS_MAX      64U
#define BUS_SERVER_CLIENTS_FOR_ROOT 8U
#define BUS_SERVER_CLIENTS_PER_USER 16U

/* Messages a client may leave unread before it is disconnected: a reply or signal that nobody reads would be
 * kept in our memory. A tick sends at most 64 signals; this is several seconds of a storm. */
#define BUS_SERVER_UNREAD_MAX 1024U
/* The same for replies: a client that asks on without reading is not a slow reader but a broken one. */
#define BUS_SERVER_REQUESTS_UNREAD_MAX 64U

typedef struct BusServer BusServer;
typedef struct BusClient BusClient;

typedef struct BusServerStatistics {
    uint32_t n_clients;
    uint64_t n_refused;      /* turned away at a limit */
    uint64_t n_disconnected; /* for not reading */
} BusServerStatistics;

/* Listens at `path` (mode 0666; a left-over socket there is replaced, the caller holds the lock). The vtable
 * is served at the manager's path and interface with `userdata` found by bus_client_userdata(). Returns 0 or
 * -errno; -ENAMETOOLONG when the path does not fit a socket address. `event` and `log` are borrowed. */
int bus_server_new(sd_event *event, Log *log, const char *path, const sd_bus_vtable *vtable, void *userdata,
                   BusServer **ret);
/* Removes the socket and hangs up, without waiting for anybody. */
BusServer *bus_server_free(BusServer *server);
DEFINE_CLEANUP(BusServer *, bus_server_free)

/* What a handler of the vtable is given as its userdata is the BusClient. */
void *bus_client_userdata(const BusClient *client);

/* Whether the client may change things: root, or the user the daemon runs as, by the socket's peer
 * credentials. */
bool bus_client_privileged(const BusClient *client);
uid_t bus_client_uid(const BusClient *client);

/* Calls `fill` to build and send one signal per client; a client that does not read is disconnected. */
typedef int (*BusServerFill)(sd_bus_message *message, void *userdata);
void bus_server_emit(BusServer *server, const char *path, const char *interface, const char *member,
                     BusServerFill fill, void *userdata);

const BusServerStatistics *bus_server_statistics(const BusServer *server);
