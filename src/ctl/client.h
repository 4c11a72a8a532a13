/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The connection to the daemon: peer-to-peer over its private socket, so that it works without a bus daemon. */

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

/* Connects to the socket in the options. Waits until the daemon has accepted the connection, for as long as
 * it makes progress (ctl/patience.h). */
CtlExit client_connect(const CtlOptions *options, sd_bus **ret);

/* Calls a method of the manager with arguments of the given bus signature ("": none). `ret` may be NULL for a
 * method that returns nothing. */
CtlExit client_call(sd_bus *bus, const char *method, json_object **ret, const char *types, ...);

/* Calls a method without arguments and returns only these keys (bus_json_read()): for large answers that are
 * requested often. */
CtlExit client_call_keys(sd_bus *bus, const char *method, const char *const *keys, json_object **ret);

/* Like sd_bus_call() without a timeout, but returns -ETIMEDOUT when the daemon neither answers nor works. The
 * connection must not be subscribed to signals, because their handlers would run during the call. */
int client_call_patiently(sd_bus *bus, sd_bus_message *message, sd_bus_error *ret_error,
                          sd_bus_message **ret);

/* Reports what a connection error means. Returns CTL_EXIT_NOT_RUNNING when the daemon has gone,
 * CTL_EXIT_NO_ANSWER when it does not answer, else CTL_EXIT_FAILURE. */
CtlExit client_fail(int error);

/* Reports why a call failed: the daemon's error, or else the state of the connection. */
CtlExit client_fail_call(int r, const sd_bus_error *error);

/* Connects, calls one method with at most one string argument (NULL: none) and returns its result. */
CtlExit client_query(const CtlOptions *options, const char *method, const char *argument, json_object **ret);

/* Appends to `list` all entries with a sequence above `after` from a method that returns them page by page
 * (ListMoves, ListHistory). */
CtlExit client_list(sd_bus *bus, const char *method, int64_t after, json_object *list);
