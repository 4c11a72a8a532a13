/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where D-Bus messages begin and end in what a client sends, and whether their length is acceptable.
 * Source: D-Bus specification, "Message Format" and "Authentication Protocol". */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest message that is let through: no call needs a tenth of that. */
#define BUS_FRAMING_MESSAGE_MAX 16384U
/* What a client may say before its first message; a handshake has some 60 bytes. */
#define BUS_FRAMING_HELLO_MAX 4096U

#define BUS_FRAMING_HEAD 16U

/* All zero: at the beginning of a connection. */
typedef struct BusFraming {
    bool begun;       /* the handshake is over */
    uint32_t n_hello; /* bytes of it so far */
    uint32_t n_match; /* bytes of its end seen in a row */
    uint8_t head[BUS_FRAMING_HEAD];
    uint32_t n_head; /* bytes of the present message's beginning in there */
    uint32_t left;   /* bytes of the present message behind that, still to come */
} BusFraming;

/* Takes note of the next `n` bytes of a client. Returns 0; -EMSGSIZE: a message, or the handshake, is longer than it
 * may be; -EBADMSG: not D-Bus. After either nothing more may be passed on. */
int bus_framing_take(BusFraming *framing, const uint8_t *bytes, size_t n);
