/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The private socket: peer-to-peer D-Bus without a bus daemon. Each client is one sd_bus with all objects. */

#include "base/util.h"
#include "daemon/bus/peer.h"
#include "daemon/log.h"

#include <stdint.h>
#include <systemd/sd-event.h>

/* Clients at once, where RLIMIT_NOFILE is high enough: they get a quarter of the descriptors. */
#define BUS_SERVER_CLIENTS_MAX 1100U
/* The part of the places that is reserved for root and the daemon's own user, and the most for any other
 * user, so that nobody can lock the others out. */
#define BUS_SERVER_SHARE_OF_ROOT 16U
#define BUS_SERVER_SHARE_OF_USER 4U

/* Signals a client may leave unread before it is disconnected. A tick sends at most 64; this is several seconds of a
 * storm. */
#define BUS_SERVER_UNREAD_MAX 1024U

typedef struct BusServer BusServer;

typedef struct BusServerStatistics {
    uint32_t n_clients;
    uint32_t clients_max;
    uint64_t n_refused;      /* turned away at a limit */
    uint64_t n_disconnected; /* for not reading, no handshake, or oversized messages */
} BusServerStatistics;

/* Listens at `path` (mode 0666), replacing a left-over socket; the caller holds the lock. Calls `add` for
 * each client, with a peer that holds `userdata`. Keeps a reference to `event`, and borrows `log`. Returns 0
 * or -errno; -ENAMETOOLONG if the path does not fit a socket address. */
int bus_server_new(sd_event *event, Log *log, const char *path, BusAddObjects add, void *userdata,
                   BusServer **ret);
/* Removes the socket and hangs up, without waiting for clients. */
BusServer *bus_server_free(BusServer *server);
DEFINE_CLEANUP(BusServer *, bus_server_free)

/* Calls `tell` for each client. A client that does not read what it is sent is disconnected instead. */
void bus_server_tell(BusServer *server, BusTell tell, void *userdata);

const BusServerStatistics *bus_server_statistics(const BusServer *server);

/* Descriptors for the most clients that the current RLIMIT_NOFILE allows. */
uint32_t bus_server_descriptors_max(void);
