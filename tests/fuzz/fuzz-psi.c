/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "kernel/psi.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The text ends where it says, and no average is beyond the 100.99 % its form allows. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    Psi psi;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (psi_parse(text, &psi) == 0 && (psi.some.avg10_permille > 1009 || psi.some.avg300_permille > 1009 ||
                                       (psi.has_full && psi.full.avg60_permille > 1009)))
        abort();
    free(text);
    return 0;
}
