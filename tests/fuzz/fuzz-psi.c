/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "fuzz.h"
#include "kernel/psi.h"

/* Parsing ends at the end of the text, and no average exceeds the 100.99 % that its format allows. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP_FREE char *text = fuzz_text(data, size);
    Psi psi;

    if (psi_parse(text, &psi) == 0 && (psi.some.avg10_permille > 1009 || psi.some.avg300_permille > 1009 ||
                                       (psi.has_full && psi.full.avg60_permille > 1009)))
        abort();
    return 0;
}
