/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/bus/framing.h"
#include "fuzz.h"

/* The result does not depend on how the stream is cut, and the reader never waits for more than a message may have. No
 * read ahead in a handshake reaches beyond its end. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BusFraming whole = {0}, pieces = {0};
    int r = bus_framing_take(&whole, data, size), r2 = 0;

    for (size_t i = 0; i < size && r2 == 0; i++) {
        uint32_t ahead = bus_framing_ahead(&pieces);

        r2 = bus_framing_take(&pieces, &data[i], 1);
        if (ahead == 0 || (ahead > 1 && ahead != UINT32_MAX && pieces.begun))
            abort();
        if (pieces.left > BUS_FRAMING_MESSAGE_MAX || pieces.n_head >= BUS_FRAMING_HEAD + (r2 < 0))
            abort();
    }
    if (r != r2 || whole.begun != pieces.begun || whole.left != pieces.left || whole.n_head != pieces.n_head)
        abort();
    return 0;
}
