/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* sd-bus allocates a message as soon as it has read its length, up to 128 MiB, and no setting lowers that. A few
 * clients with half a message each would take all the memory the unit allows. So lengths are checked before.
 *
 * Example: "l", a call, no flags, version 1; 5 bytes of body; serial 1; 110 bytes of fields, padded to 112: 117
 * bytes follow these 16. */

#include "daemon/bus/framing.h"

#include "base/util.h"

/* BEGIN is a line of its own, and never the first. */
static const char hello_end[] = "\r\nBEGIN\r\n";

static int take_hello(BusFraming *framing, uint8_t byte)
{
    if (++framing->n_hello > BUS_FRAMING_HELLO_MAX)
        return -EMSGSIZE;
    /* After a mismatch, only a '\r' can begin the end anew. The '\r' matched before the end's last byte cannot be that
     * beginning: there, too, only '\n' may follow. */
    if (byte == (uint8_t)hello_end[framing->n_match])
        framing->n_match++;
    else
        framing->n_match = byte == '\r' ? 1 : 0;
    framing->begun = framing->n_match == sizeof(hello_end) - 1;
    return 0;
}

static uint64_t read_u32(const uint8_t *bytes, bool little)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < 4; i++)
        value |= (uint64_t)bytes[i] << 8 * (little ? i : 3 - i);
    return value;
}

static int take_head(BusFraming *framing, uint8_t byte)
{
    uint64_t length;
    bool little;

    framing->head[framing->n_head++] = byte;
    if (framing->n_head < BUS_FRAMING_HEAD)
        return 0;
    little = framing->head[0] == 'l';
    if (!little && framing->head[0] != 'B')
        return -EBADMSG;
    length = read_u32(&framing->head[4], little) + (read_u32(&framing->head[12], little) + 7) / 8 * 8;
    if (length > BUS_FRAMING_MESSAGE_MAX - BUS_FRAMING_HEAD)
        return -EMSGSIZE;
    framing->left = (uint32_t)length;
    framing->n_head = 0;
    return 0;
}

uint32_t bus_framing_ahead(const BusFraming *framing)
{
    return framing->begun ? UINT32_MAX : (uint32_t)sizeof(hello_end) - 1 - framing->n_match;
}

int bus_framing_take(BusFraming *framing, const uint8_t *bytes, size_t n)
{
    while (n > 0) {
        size_t n_taken = framing->left > 0 ? MIN(framing->left, n) : 1;
        int r = 0;

        if (!framing->begun)
            r = take_hello(framing, *bytes);
        else if (framing->left > 0)
            framing->left -= (uint32_t)n_taken;
        else
            r = take_head(framing, *bytes);
        if (r < 0)
            return r;
        bytes += n_taken;
        n -= n_taken;
    }
    return 0;
}
