/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* world_load() never crashes, says "line N: expected" about what it refuses, and what it accepts survives a
 * round trip. */

#include "fuzz.h"
#include "world/world.h"

static void round_trip(const World *world)
{
    CLEANUP_FREE char *text = world_dump(world), *again = NULL, *error = NULL;
    CLEANUP(world_free_p) World *copy = NULL;

    check(text);
    check(world_load(text, strlen(text), &copy, &error) == 0);
    again = world_dump(copy);
    check(again && strcmp(text, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(world_free_p) World *world = NULL;
    CLEANUP_FREE char *error = NULL;
    int r = world_load((const char *)data, size, &world, &error);

    check(r == 0 || (r == -EINVAL && error && strncmp(error, "line ", 5) == 0));
    if (r == 0) {
        check(world_check(world, NULL) == 0);
        round_trip(world);
        world_sum(world);
        check(world_compact(world) == 0);
        check(world_check(world, NULL) == 0);
        round_trip(world);
    }
    return 0;
}
