/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Client data on its way to sd-bus: a part at a time, and only messages of acceptable length. */

#include "daemon/bus/framing.h"

#define BUS_INTAKE_BYTES 4096U

typedef struct BusIntake {
    int client_fd; /* the client's socket, borrowed */
    int pass_fd;   /* what is read here is written there; owned, -1: none */
    BusFraming framing;
} BusIntake;

/* Reads from `client_fd`, which must not block. *ret_fd is where sd-bus finds what was let through; the caller owns
 * it. Returns 0 or -errno. */
int bus_intake_init(BusIntake *intake, int client_fd, int *ret_fd);
void bus_intake_done(BusIntake *intake);

/* Passes on up to BUS_INTAKE_BYTES; to be called when what was passed on before has been read. Returns >0: some; 0:
 * there is nothing now; -ECONNRESET: the client hung up; -EMSGSIZE and -EBADMSG as bus_framing_take(); or another
 * -errno. */
int bus_intake_pass(BusIntake *intake);
