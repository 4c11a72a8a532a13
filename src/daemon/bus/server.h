/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The private socket: peer-to-peer D-Bus without a bus daemon. Each client is one sd_bus with all objects. */

#include "base/util.h"
#include "daemon/bus/peer.h"
#include "daemon/log.h"

#include <stdint.h>
#include <systemd/sd-event.h>

/* Clients at once, where RLIMIT_NOFILE is high enough: a quarter of the descriptors is for them. */
#define BUS_SERVER_CLIENTS_MAX 1100U
/* The part of the places that is kept for root, and the part one other user gets at most. */
#define BUS_SERVER_SHARE_OF_ROOT 16U
#define BUS_SERVER_SHARE_OF_USER 4U

/* Signals a client may leave unread before it is disconnected. A tick sends at most 64; this is several seconds of a
 * storm. */
#define BUS_SERVER_UNREAD_MAX 1024U

typedef struct BusServer BusServer;

typedef struct BusServerStatistics {
    uint32_t n_clients;
    uint32_t clients_max;
    uint64_t n_refused; /* turned away at a limit */
    uint64_t
        n_disconnected; /* for not reading, for silence before the handshake, for messages that are too long */
} BusServerStatistics;

/* Listens at `path` (mode 0666; a left-over socket there is replaced, the caller holds the lock). `add` is called
 * for each client; the peer it is given holds `userdata`. Returns 0 or -errno; -ENAMETOOLONG when the path does not
 * fit a socket address. `event` and `log` are borrowed. */
int bus_server_new(sd_event *event, Log *log, const char *path, BusAddObjects add, void *userdata,
                   BusServer **ret);
/* Removes the socket and hangs up, without waiting for anybody. */
BusServer *bus_server_free(BusServer *server);
DEFINE_CLEANUP(BusServer *, bus_server_free)

/* Calls `tell` for each client; one that does not read what it is sent is disconnected instead. */
void bus_server_tell(BusServer *server, BusTell tell, void *userdata);

const BusServerStatistics *bus_server_statistics(const BusServer *server);

/* Descriptors that as many clients take as there may be with the RLIMIT_NOFILE of now. */
uint32_t bus_server_descriptors_max(void);
