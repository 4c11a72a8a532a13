/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The line with the result. README.md explains the keys. */

#include <inttypes.h>
#include <stdio.h>

#include "room.h"

static void print_bool(const char *key, bool value)
{
    (void)printf(",\"%s\":%s", key, value ? "true" : "false");
}

static void print_u64(const char *key, uint64_t value)
{
    (void)printf(",\"%s\":%" PRIu64, key, value);
}

/* The value is null unless `known`. */
static void print_double(const char *key, double value, bool known)
{
    if (known)
        (void)printf(",\"%s\":%.6f", key, value);
    else
        (void)printf(",\"%s\":null", key);
}

static double seconds(uint64_t nsec)
{
    return (double)nsec / 1e9;
}

static void print_shares(const char *when, const PlaceShares *shares)
{
    double n = (double)shares->n_pages;
    bool known = shares->n_pages > 0;
    unsigned last = 0;
    char key[32];

    (void)snprintf(key, sizeof(key), "local_%s", when);
    print_double(key, (double)shares->n_local / n, known);
    (void)snprintf(key, sizeof(key), "remote_%s", when);
    print_double(key, (double)(shares->n_pages - shares->n_local) / n, known);
    if (!known) {
        (void)printf(",\"nodes_%s\":null", when);
        return;
    }
    for (unsigned node = 0; node < ROOM_NODES_MAX; node++)
        if (shares->by_node[node] > 0)
            last = node;
    (void)printf(",\"nodes_%s\":[", when);
    for (unsigned node = 0; node <= last; node++)
        (void)printf("%s%.6f", node ? "," : "", (double)shares->by_node[node] / n);
    (void)printf("]");
}

static void print_work(const Room *room)
{
    uint64_t steps = 0, sum = 0;

    for (unsigned i = 0; i < room->n_threads; i++) {
        steps += room->threads[i].thread.steps;
        sum += room->threads[i].thread.sum;
    }
    print_u64("operations", steps * room->shape->step_operations);
    (void)printf(",\"unit\":\"%s\",\"operations_of\":[", room->shape->unit);
    for (unsigned i = 0; i < room->n_threads; i++)
        (void)printf("%s%" PRIu64, i ? "," : "",
                     room->threads[i].thread.steps * room->shape->step_operations);
    (void)printf("]");
    print_u64("sum", sum);
}

/* Means over the threads that completed a pass, and the shortest and longest pass of all. */
static void print_passes(const Room *room)
{
    uint64_t n = 0, first = 0, last = 0, min = UINT64_MAX, max = 0;

    for (unsigned i = 0; i < room->n_threads; i++) {
        const RoomPasses *passes = &room->threads[i].passes;

        if (passes->n == 0)
            continue;
        n++;
        first += passes->first_nsec;
        last += passes->last_nsec;
        min = passes->min_nsec < min ? passes->min_nsec : min;
        max = passes->max_nsec > max ? passes->max_nsec : max;
    }
    print_double("pass_first_s", seconds(first) / (double)n, n > 0);
    print_double("pass_last_s", seconds(last) / (double)n, n > 0);
    print_double("pass_min_s", seconds(min), n > 0);
    print_double("pass_max_s", seconds(max), n > 0);
}

static void print_changes(const Room *room)
{
    uint64_t n_changes = 0;

    for (unsigned i = 0; i < room->n_threads; i++)
        n_changes += room->threads[i].n_changes;
    print_u64("changes", n_changes);
    (void)printf(",\"changes_s\":[");
    for (unsigned i = 0; i < ROOM_CHANGES_MAX && room->changes_nsec[i] > 0; i++)
        (void)printf("%s%.6f", i ? "," : "", seconds(room->changes_nsec[i] - room->start_nsec));
    (void)printf("]");
}

static void print_samples(const Room *room, const RoomResult *result)
{
    (void)printf(",\"samples\":[");
    for (size_t i = 0; i < result->n_samples; i++) {
        const RoomSample *sample = &result->samples[i];

        (void)printf("%s[%.3f,%" PRIu64 ",", i ? "," : "", seconds(sample->nsec),
                     sample->steps * room->shape->step_operations);
        if (sample->local < 0)
            (void)printf("null]");
        else
            (void)printf("%.4f]", sample->local);
    }
    (void)printf("]");
}

static void print_laps(const Room *room)
{
    uint64_t n = 0, worst = 0, laps[WORK_LAPS] = {0};

    for (unsigned i = 0; i < room->n_threads; i++) {
        const WorkThread *thread = &room->threads[i].thread;

        n += thread->n_laps;
        worst = thread->lap_worst_nsec > worst ? thread->lap_worst_nsec : worst;
        for (unsigned k = 0; k < WORK_LAPS; k++)
            laps[k] += thread->laps[k];
    }
    print_double("lap_worst_s", seconds(worst), n > 0);
    print_u64("laps", n);
    (void)printf(",\"laps_of_s\":[");
    for (unsigned k = 0; n > 0 && k < WORK_LAPS; k++)
        (void)printf("%s[%.5f,%" PRIu64 "]", k ? "," : "", seconds(room_laps_nsec[k]), laps[k]);
    (void)printf("]");
}

static uint64_t bytes_of_all(const Room *room)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < room->n_threads; i++)
        for (unsigned region = 0; region < WORK_REGIONS_MAX; region++)
            bytes += room->threads[i].thread.shares[region].bytes;
    return bytes;
}

void room_print(const Room *room, const RoomResult *result)
{
    uint64_t end = room->start_nsec, first_end = UINT64_MAX;

    for (unsigned i = 0; i < room->n_threads; i++) {
        end = room->threads[i].end_nsec > end ? room->threads[i].end_nsec : end;
        first_end = room->threads[i].end_nsec < first_end ? room->threads[i].end_nsec : first_end;
    }

    (void)printf("{\"workload\":\"%s\"", room->shape->name);
    print_double("seconds", seconds(end - room->start_nsec), true);
    print_double("all_work_s", seconds(first_end - room->start_nsec), true);
    print_work(room);
    print_bool("complete", result->complete);
    print_u64("processes", room->options.processes);
    print_u64("threads", room->n_threads);
    print_u64("bytes", bytes_of_all(room));
    (void)printf(",\"placement\":\"%s\"", room->options.placement_text);
    (void)printf(",\"bind\":\"%s\"", room_bind_names[room->options.bind]);
    if (room->shape->orders)
        (void)printf(",\"order\":\"%s\"", room->options.random_order ? "random" : "sequential");
    if (room->options.window < 0)
        (void)printf(",\"window\":null");
    else
        print_u64("window", (uint64_t)room->options.window);
    print_shares("start", &result->start);
    print_shares("end", &result->end);
    print_passes(room);
    print_changes(room);
    print_laps(room);
    print_samples(room, result);
    (void)printf("}\n");
}
