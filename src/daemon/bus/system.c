/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The life of the connection:
 *
 *   waiting --retry--> connecting --name taken--> ready
 *      ^                   |                        |
 *      +---refused, lost---+----------lost----------+
 *
 * The wait is a second at first and doubles up to a minute. Each change is logged once, so that a host without a system
 * bus has one line about it. Connecting is asynchronous: sd-bus greets the bus and asks for the name while the loop
 * turns.
 *
 * A connection cannot be freed inside its own callbacks; it is closed at the next attempt. */

#include "daemon/bus/system.h"

#include "base/time.h"
#include "daemon/bus/authorize.h"
#include "daemon/bus/connection.h"
#include "numaplace/bus.h"
#include "numaplace/messages.h"

#include <string.h>
#include <sys/epoll.h>

#define RETRY_MIN_USEC USEC_PER_SEC
#define RETRY_MAX_USEC (60 * USEC_PER_SEC)

/* Messages the bus may leave unread. A bus with a thousand busy clients sends calls faster than it takes
 * answers, because this connection is one of many. Beyond UNREAD_MAX, a message is read only when answers
 * could be written, until UNREAD_ENOUGH are left; calls wait on the bus, which has its own limits. Signals
 * have their own limit; a gap in their sequence tells clients. */
#define UNREAD_MAX         128U
#define UNREAD_ENOUGH      32U
#define UNREAD_SIGNALS_MAX 1024U

struct BusSystem {
    sd_event *event;
    Log *log;
    BusAddObjects add;
    BusPeer peer;
    sd_bus *bus;                   /* NULL: not connected yet */
    sd_event_source *drain_source; /* NULL: sd-bus itself watches the connection */
    sd_event_source *retry_source;
    uint64_t retry_usec; /* length of the next wait */
    bool ready, lost, told_missing;
    BusRequests requests;
};

bool bus_system_ready(const BusSystem *system)
{
    return system->ready;
}

/* The priority of everything except Unix signals. Requests and ticks alternate, so neither a storm of requests nor
 * ticks longer than their interval (with hundreds of runnable tasks) keep the other waiting. */
static int attach(BusSystem *system)
{
    return sd_bus_attach_event(system->bus, system->event, SD_EVENT_PRIORITY_NORMAL);
}

static void hang_up(BusSystem *system)
{
    bus_requests_clear(&system->requests);
    system->drain_source = sd_event_source_disable_unref(system->drain_source);
    system->bus = bus_connection_end(system->bus);
    system->ready = false;
}

/* Logs, once, that there is no bus, and tries again later. */
static void wait_for_bus(BusSystem *system, const char *why)
{
    if (system->lost)
        return;
    system->lost = true;
    if (!system->told_missing)
        log_notice(system->log, NUMAPLACE_MESSAGE_MISSING_FEATURE,
                   "%s (%s): clients reach the daemon only through its own socket until that changes",
                   system->ready ? "the system bus went away" : "cannot join the system bus", why);
    system->told_missing = true;
    system->ready = false;
    (void)sd_event_source_set_time_relative(system->retry_source, system->retry_usec);
    (void)sd_event_source_set_enabled(system->retry_source, SD_EVENT_ONESHOT);
    system->retry_usec = MIN(2 * system->retry_usec, RETRY_MAX_USEC);
}

static int on_disconnected(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    wait_for_bus(userdata, "it hung up");
    return 0;
}

static int on_name(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    BusSystem *system = userdata;
    const sd_bus_error *refused = sd_bus_message_get_error(reply);
    uint32_t code = 0;

    if (refused) {
        wait_for_bus(system, refused->message ? refused->message : refused->name);
        return 1;
    }
    /* 1: the daemon owns the name. */
    if (sd_bus_message_read(reply, "u", &code) < 0 || code != 1) {
        wait_for_bus(system, "another program has the name " NUMAPLACE_BUS_NAME);
        return 1;
    }
    system->ready = true;
    system->told_missing = false;
    system->retry_usec = RETRY_MIN_USEC;
    log_info(system->log, NULL, "serving " NUMAPLACE_BUS_NAME " on the system bus");
    return 1;
}

/* The bus accepts data again. sd-bus first writes what it can, and then reads one message. */
static int on_writable(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    BusSystem *system = userdata;
    uint64_t n = 0;
    int r = sd_bus_process(system->bus, NULL);

    if (r >= 0)
        r = sd_bus_get_n_queued_write(system->bus, &n);
    if (r >= 0 && n > UNREAD_ENOUGH && !system->lost)
        return 0;
    system->drain_source = sd_event_source_disable_unref(system->drain_source);
    if (r >= 0 && !system->lost)
        r = attach(system);
    if (r < 0)
        wait_for_bus(system, strerror(-r));
    return 0;
}

static int drain(BusSystem *system)
{
    int fd = sd_bus_get_fd(system->bus);

    if (fd < 0)
        return fd;
    sd_bus_detach_event(system->bus);
    return sd_event_add_io(system->event, &system->drain_source, fd, EPOLLOUT, on_writable, system);
}

/* Looks at every message before the objects do. */
static int on_message(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    BusSystem *system = userdata;
    uint64_t n = 0;
    int r = 0;

    if (system->lost)
        return 1;
    if (!system->drain_source && sd_bus_get_n_queued_write(system->bus, &n) >= 0 && n > UNREAD_MAX)
        r = drain(system);
    if (r < 0)
        wait_for_bus(system, strerror(-r));
    return 0;
}

static int connect_bus(BusSystem *system)
{
    int r = sd_bus_open_system(&system->bus);

    if (r < 0)
        return r;
    r = bus_connection_serve(system->bus, on_message, on_disconnected, system, system->add, &system->peer);
    if (r < 0)
        return r;
    r = sd_bus_request_name_async(system->bus, NULL, NUMAPLACE_BUS_NAME, 0, on_name, system);
    if (r < 0)
        return r;
    return attach(system);
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
    BusSystem *system = userdata;
    int r;

    hang_up(system);
    system->lost = false;
    r = connect_bus(system);
    if (r < 0)
        wait_for_bus(system, strerror(-r));
    return 0;
}

int bus_system_new(sd_event *event, Log *log, BusAddObjects add, void *userdata, BusSystem **ret)
{
    CLEANUP(bus_system_free_p) BusSystem *system = calloc(1, sizeof(*system));
    int r;

    if (!system)
        return -ENOMEM;
    system->event = sd_event_ref(event);
    system->log = log;
    system->add = add;
    system->peer = (BusPeer){.userdata = userdata, .requests = &system->requests};
    system->retry_usec = RETRY_MIN_USEC;
    r = sd_event_add_time_relative(event, &system->retry_source, CLOCK_MONOTONIC, 0, 0, on_retry, system);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(system);
    return 0;
}

BusSystem *bus_system_free(BusSystem *system)
{
    if (!system)
        return NULL;
    hang_up(system);
    sd_event_source_disable_unref(system->retry_source);
    sd_event_unref(system->event);
    free(system);
    return NULL;
}

void bus_system_tell(BusSystem *system, BusTell tell, void *userdata)
{
    uint64_t n = 0;

    if (system->ready && sd_bus_get_n_queued_write(system->bus, &n) >= 0 && n <= UNREAD_SIGNALS_MAX)
        tell(system->bus, userdata);
}
