/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* sd-bus reads from a socket pair of ours instead of the client's socket. That costs three system calls for up to 4 KiB
 * of calls, some 3 us. It makes two things possible that sd-bus has no setting for: limiting the length of messages,
 * and not reading on while answers wait to be read. Data that is not read stays in the client's own socket buffer.
 *
 * Credentials must be read from the client's socket: on the pair they would be the daemon's own. */

#include "daemon/bus/intake.h"

#include "base/util.h"

#include <sys/socket.h>

int bus_intake_init(BusIntake *intake, int client_fd, int *ret_fd)
{
    int fds[2];

    *intake = (BusIntake){.client_fd = client_fd, .pass_fd = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
        return -errno;
    intake->pass_fd = fds[0];
    *ret_fd = fds[1];
    return 0;
}

void bus_intake_done(BusIntake *intake)
{
    close_p(&intake->pass_fd);
    intake->pass_fd = -1;
}

int bus_intake_pass(BusIntake *intake)
{
    uint8_t bytes[BUS_INTAKE_BYTES];
    ssize_t n = recv(intake->client_fd, bytes, sizeof(bytes), MSG_DONTWAIT), n_passed;
    int r;

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -ECONNRESET;
    r = bus_framing_take(&intake->framing, bytes, (size_t)n);
    if (r < 0)
        return r;
    /* It was empty: so little always fits. */
    n_passed = send(intake->pass_fd, bytes, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n_passed < 0)
        return -errno;
    return n_passed == n ? 1 : -EIO;
}
