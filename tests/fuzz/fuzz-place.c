/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "act/act.h"
#include "act/place.h"
#include "fuzz.h"

/* A path one level below any other is a different place, and never the root. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char tail[] = "0::/below\n";
    CLEANUP_FREE char *text = malloc(size + sizeof(tail));
    uint64_t place;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    place = place_of_cgroups(text);
    if (place != place_of_cgroups(text))
        abort();
    if (place_is_first(text) && !strstr(text, "NSpid:"))
        abort();
    memcpy(text + strlen(text), tail, sizeof(tail));
    if (place_of_cgroups(text) <= ACT_PLACE_ROOT || place_of_cgroups(text) == place)
        abort();
    return 0;
}
