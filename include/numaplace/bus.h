/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Names on the bus. Methods that describe something return dictionaries (a{sv}, or aa{sv} for a list), so that keys
 * can be added without breaking clients; `numaplacectl --json` prints exactly these keys. */

#define NUMAPLACE_BUS_NAME              "org.numaplace1"
#define NUMAPLACE_BUS_PATH              "/org/numaplace1"
#define NUMAPLACE_BUS_INTERFACE_MANAGER "org.numaplace1.Manager"

/* Errors of the manager's methods. */
#define NUMAPLACE_ERROR_NO_SUCH_WORKLOAD "org.numaplace1.Error.NoSuchWorkload"
#define NUMAPLACE_ERROR_NO_SUCH_PROCESS  "org.numaplace1.Error.NoSuchProcess"
#define NUMAPLACE_ERROR_BAD_POLICY       "org.numaplace1.Error.BadPolicy"
#define NUMAPLACE_ERROR_NOT_PERMITTED    "org.numaplace1.Error.NotPermitted"
#define NUMAPLACE_ERROR_LIMIT            "org.numaplace1.Error.LimitExceeded"

/* org.numaplace1.Manager
 *
 *   GetStatus() -> a{sv}
 *   GetTopology() -> a{sv}           nodes, cpus, distances, llcs: what topology_format() says, structured
 *   ListWorkloads() -> aa{sv}
 *   GetWorkload(s name) -> a{sv}     with "groups" (aa{sv}), "leases" (aa{sv}), "refusals" (aa{sv})
 *   ListTasks(s name) -> aa{sv}
 *   Explain(s pid_or_name) -> a{sv}  "actions" (aa{sv}) and "refusals" (aa{sv}), newest last
 *   ListMoves(t after, u max) -> aa{sv}   the ring of past actions; "sequence" (t) numbers them
 *   Pause(s name), Resume(s name), Release(s name)     "" stands for everything
 *   Reload()
 *   signal Moved(a{sv})              one per action carried out, same keys as ListMoves
 */
