/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The connection to the daemon: peer-to-peer over its private socket, so that it works where no bus daemon runs. */

#include "ctl/ctl.h"

#include <systemd/sd-bus.h>

static inline void sd_bus_close_unref_p(sd_bus **bus)
{
    if (*bus)
        (void)sd_bus_flush_close_unref(*bus);
}

static inline void sd_bus_message_unref_p(sd_bus_message **message)
{
    if (*message)
        (void)sd_bus_message_unref(*message);
}

#define CLEANUP_BUS     CLEANUP(sd_bus_close_unref_p)
#define CLEANUP_MESSAGE CLEANUP(sd_bus_message_unref_p)

/* Connects to the socket the options name, and waits until the daemon has taken the connection, as long as it works
 * (ctl/patience.h). */
CtlExit client_connect(const CtlOptions *options, sd_bus **ret);

/* Calls a method of the manager with arguments of the given bus signature ("" for none). `ret` may be NULL when the
 * method returns nothing. */
CtlExit client_call(sd_bus *bus, const char *method, json_object **ret, const char *types, ...);

/* Calls one without arguments and hands out what has one of these keys (bus_json_read()): large answers asked for often
 * cost less. */
CtlExit client_call_keys(sd_bus *bus, const char *method, const char *const *keys, json_object **ret);

/* As sd_bus_call() without a limit, but returns -ETIMEDOUT when the daemon neither answers nor works. The connection
 * must listen to no signals: their handlers would be called meanwhile. */
int client_call_patiently(sd_bus *bus, sd_bus_message *message, sd_bus_error *ret_error,
                          sd_bus_message **ret);

/* Says what an error of the connection means: exit code NOT_RUNNING when nobody is there any more, NO_ANSWER when
 * nobody answers. */
CtlExit client_fail(int error);

/* Says what a call failed with: what the daemon answered, or else what became of the connection. */
CtlExit client_fail_call(int r, const sd_bus_error *error);

/* Connects, calls one method with at most one string argument (NULL: none) and hands out its result. */
CtlExit client_query(const CtlOptions *options, const char *method, const char *argument, json_object **ret);

/* Appends to `list` all entries with a sequence above `after` of a method that hands them out page by page (ListMoves,
 * ListHistory). */
CtlExit client_list(sd_bus *bus, const char *method, int64_t after, json_object *list);
