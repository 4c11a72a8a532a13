/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The private socket: peer-to-peer D-Bus without a bus daemon. Each client is one sd_bus with all
 * objects. */

#include "base/util.h"
#include "daemon/bus-peer.h"
#include "daemon/log.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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

typedef struct BusServerStatistics {
    uint32_t n_clients;
    uint64_t n_refused;      /* turned away at a limit */
    uint64_t n_disconnected; /* for not reading */
} BusServerStatistics;

/* Listens at `path` (mode 0666; a left-over socket there is replaced, the caller holds the lock). `add` is called for each
 * client; the peer it is given holds `userdata`. Returns 0 or -errno; -ENAMETOOLONG when the path does not fit a socket
 * address. `event` and `log` are borrowed. */
int bus_server_new(sd_event *event, Log *log, const char *path, BusAddObjects add, void *userdata,
                   BusServer **ret);
/* Removes the socket and hangs up, without waiting for anybody. */
BusServer *bus_server_free(BusServer *server);
DEFINE_CLEANUP(BusServer *, bus_server_free)

/* Calls `tell` for each client; one that does not read what it is sent is disconnected instead. */
void bus_server_tell(BusServer *server, BusTell tell, void *userdata);

const BusServerStatistics *bus_server_statistics(const BusServer *server);
