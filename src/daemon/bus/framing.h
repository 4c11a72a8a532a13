/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Finds where D-Bus messages begin and end in what a client sends, and whether their length is acceptable.
 * Source: D-Bus specification, "Message Format" and "Authentication Protocol". */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest message let through; no call needs a tenth of it. */
#define BUS_FRAMING_MESSAGE_MAX 16384U
/* The most a client may send before its first message; a handshake has some 60 bytes. */
#define BUS_FRAMING_HELLO_MAX 4096U

#define BUS_FRAMING_HEAD 16U

/* The state of a connection. Zeroed: at its beginning. */
typedef struct BusFraming {
    bool begun;       /* the handshake is over */
    uint32_t n_hello; /* bytes of it so far */
    uint32_t n_match; /* bytes of its end matched in a row */
    uint8_t head[BUS_FRAMING_HEAD];
    uint32_t n_head; /* bytes of the current message in `head` */
    uint32_t left;   /* bytes of the current message after its head, still to come */
} BusFraming;

/* The most bytes to read now, so that none of them lies beyond the end of the handshake; UINT32_MAX after it. */
uint32_t bus_framing_ahead(const BusFraming *framing);

/* Takes note of the next `n` bytes of a client. Returns 0; -EMSGSIZE: a message or the handshake is too long;
 * -EBADMSG: not D-Bus. After an error nothing more may be passed on. */
int bus_framing_take(BusFraming *framing, const uint8_t *bytes, size_t n);
