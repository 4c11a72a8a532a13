/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "report.h"

#include <errno.h>
#include <inttypes.h>

/* Ends the line and flushes it, so that a write error is reported at once. */
static int end_line(FILE *f)
{
    if (fputs("}\n", f) == EOF || fflush(f) == EOF || ferror(f))
        return errno > 0 ? -errno : -EIO;
    return 0;
}

int report_config(FILE *f, const Config *c, int api_version)
{
    fprintf(f, "{\"event\":\"config\",\"api_version\":%d,\"nodes\":%u,\"cpus\":%u", api_version, c->n_nodes,
            c->n_cpus);
    fprintf(f, ",\"insn_psec\":%u,\"llc_nsec\":%u,\"walk_nsec\":%u,\"wake_nsec\":%u,\"pause_nsec\":%u",
            c->insn_psec, c->llc_nsec, c->walk_nsec, c->wake_nsec, c->pause_nsec);
    fprintf(f, ",\"scale_permille\":%u,\"bandwidth_mbs\":%u,\"sequence_permille\":%u", c->scale_permille,
            c->bandwidth_mbs, c->sequence_permille);
    fprintf(f, ",\"cache_kib\":%u,\"llc_kib\":%u,\"slice_nsec\":%u,\"latency_nsec\":[", c->cache_kib,
            c->llc_kib, c->slice_nsec);
    for (unsigned i = 0; i < c->n_nodes; i++) {
        for (unsigned j = 0; j < c->n_nodes; j++)
            fprintf(f, "%s%" PRIu64,
                    j > 0   ? ","
                    : i > 0 ? "],["
                            : "[",
                    config_latency_nsec(c, c->distance[i][j]));
    }
    fputs("]]", f);
    return end_line(f);
}

static void print_cpu(FILE *f, const Config *c, Model *m, unsigned cpu)
{
    const ModelCounters *n = model_counters(m, cpu);

    fprintf(f, "%s{\"cpu\":%u,\"node\":%u", cpu > 0 ? "," : "", cpu, c->cpu_node[cpu]);
    fprintf(f, ",\"user_local\":%" PRIu64 ",\"user_remote\":%" PRIu64, n->user_local, n->user_remote);
    fprintf(f, ",\"kernel_local\":%" PRIu64 ",\"kernel_remote\":%" PRIu64, n->kernel_local, n->kernel_remote);
    fprintf(f, ",\"line_local\":%" PRIu64 ",\"line_remote\":%" PRIu64, n->line_local, n->line_remote);
    fprintf(f, ",\"sequential\":%" PRIu64 ",\"llc\":%" PRIu64 ",\"walks\":%" PRIu64, n->sequential, n->llc,
            n->walks);
    fprintf(f, ",\"written_back\":%" PRIu64 ",\"queue_nsec\":%" PRIu64, n->written_back,
            n->queue_psec / 1000);
    fprintf(f, ",\"charged_nsec\":%" PRIu64 "}", n->charged_psec / 1000);
}

int report_counters(FILE *f, const Config *c, Model *m, const char *event, unsigned number, int cpu,
                    uint64_t time_nsec)
{
    fprintf(f, "{\"event\":\"%s\",\"number\":%u,\"cpu\":%d,\"time_nsec\":%" PRIu64 ",\"cpus\":[", event,
            number, cpu, time_nsec);
    for (unsigned i = 0; i < c->n_cpus; i++)
        print_cpu(f, c, m, i);
    fputc(']', f);
    return end_line(f);
}
