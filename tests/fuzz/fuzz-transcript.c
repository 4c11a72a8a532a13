/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A transcript that is read and planned anew never crashes, and errors in it are reported with the number of
 * the entry. */

#include "fuzz.h"
#include "plan/transcript.h"

/* Each World that is read is complete. */
static void read_worlds(const uint8_t *data, size_t size)
{
    CLEANUP(transcript_reader_done) TranscriptReader reader = transcript_reader((const char *)data, size);
    PlanLimits limits;
    World *world;
    char *plan;

    while (transcript_next_world(&reader, &world, &limits, &plan) > 0) {
        check(reader.policies && world_check(world, NULL) == 0);
        (void)world_free(world);
        free(plan);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(transcript_reader_done) TranscriptReader reader = transcript_reader((const char *)data, size);
    TranscriptPlan plan;
    int r;

    while ((r = transcript_next(&reader, &plan)) > 0) {
        check(plan.recorded && plan.now);
        transcript_plan_done(&plan);
    }
    check(r == 0 || (r == -EINVAL && reader.error && strncmp(reader.error, "entry ", 6) == 0));
    read_worlds(data, size);
    return 0;
}
