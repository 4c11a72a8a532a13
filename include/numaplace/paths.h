/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where the daemon and its clients meet. Installed: other programs may rely on these. */

#define NUMAPLACE_RUNTIME_DIRECTORY "/run/numaplace"
#define NUMAPLACE_BUS_SOCKET        "/run/numaplace/bus"     /* private, peer-to-peer D-Bus */
#define NUMAPLACE_JOURNAL           "/run/numaplace/journal" /* undo journal */
#define NUMAPLACE_LOCK              "/run/numaplace/lock"    /* held by the running daemon */
#define NUMAPLACE_HOST_LOCK \
    "/run/numaplace/host.lock" /* held by the daemon that places tasks, whatever its runtime directory */
