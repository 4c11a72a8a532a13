/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The page. Pictures are SVG in the page itself, with time from left to right. For each workload they show
 * the CPUs it used, stacked by node, and below that how much of its memory was local and how much it waited.
 * The page has no script and fetches nothing. */

#include "ctl/verbs/report/report.h"

#include "base/human.h"
#include "base/time.h"
#include "ctl/sentence.h"
#include "ctl/view.h"

#include <inttypes.h>
#include <time.h>

#define WIDTH     960.0
#define HEIGHT    120.0
#define LEFT      52.0
#define TOP       6.0
#define BOTTOM    18.0
#define TIMES     6U   /* labels below a picture */
#define MOVES_MAX 200U /* the last ones */
#define DRAWN_MAX 24U  /* workloads; the others are in the table */

typedef struct Chart {
    FILE *out;
    const Report *report;
    double max; /* of the vertical axis */
} Chart;

/* The value of a step; negative: none. */
typedef double (*Curve)(const Report *report, const void *what, size_t step);

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1040px;margin:2em auto;padding:0 1em;color:#222;background:#fff}"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin:2em 0 0}table{border-collapse:collapse}"
    "td,th{padding:.2em .8em .2em 0;text-align:left;vertical-align:top}th{border-bottom:1px solid #999}"
    ".n{text-align:right;font-variant-numeric:tabular-nums}figure{margin:.6em 0}figcaption{font-size:.85em}"
    "svg{width:100%;height:auto;display:block}text{font-size:11px;fill:currentColor}.g{stroke:#8884;stroke-width:1}"
    ".key{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 .8em}"
    ".n0{fill:#4477aa;background:#4477aa}.n1{fill:#ee7733;background:#ee7733}.n2{fill:#228833;background:#228833}"
    ".n3{fill:#ccbb44;background:#ccbb44}.n4{fill:#aa3377;background:#aa3377}.n5{fill:#66ccee;background:#66ccee}"
    ".n6{fill:#997700;background:#997700}.n7{fill:#bbbbbb;background:#bbbbbb}"
    ".l0{fill:none;stroke:#228833;stroke-width:1.6;background:#228833}"
    ".l1{fill:none;stroke:#cc3311;stroke-width:1.6;background:#cc3311}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#16181c}th{border-color:#666}}";

#define N_COLOURS 8U

static void put_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        const char *entity = *text == '&' ? "&amp;" : *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : NULL;

        if (entity)
            (void)fputs(entity, out);
        else
            (void)fputc(*text, out);
    }
}

static void put_time(FILE *out, bool day, uint64_t usec)
{
    time_t seconds = (time_t)(usec / USEC_PER_SEC);
    char text[64] = "";
    struct tm local;

    if (localtime_r(&seconds, &local))
        (void)strftime(text, sizeof(text), day ? "%F %H:%M" : "%H:%M", &local);
    put_text(out, text);
}

/* Pictures */

static double x_of(const Report *report, double seconds)
{
    return LEFT + CLAMP(seconds / MAX(report->seconds, 1.0), 0.0, 1.0) * (WIDTH - LEFT);
}

static double y_of(const Chart *chart, double value)
{
    return TOP + (1.0 - CLAMP(value / chart->max, 0.0, 1.0)) * (HEIGHT - TOP - BOTTOM);
}

/* The next of 1, 2, 5, 10, ..., so that the axis ends with a number that is easy to read. */
static double round_up(double value)
{
    double step = 0.01;

    for (unsigned i = 0; step < value && i < 60; i++)
        step *= i % 3 == 1 ? 2.5 : 2.0;
    return step;
}

static void begin_chart(const Chart *chart, const char *caption, const char *unit)
{
    const Report *report = chart->report;

    (void)fprintf(chart->out, "<figure><svg viewBox=\"0 0 %.0f %.0f\" role=\"img\"><title>", WIDTH, HEIGHT);
    put_text(chart->out, caption);
    (void)fprintf(chart->out, "</title>\n");
    for (unsigned i = 0; i <= 2; i++) {
        double value = chart->max * i / 2.0, y = y_of(chart, value);

        (void)fprintf(
            chart->out,
            "<path class=\"g\" d=\"M%.0f %.1fH%.0f\"/><text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%g%s</text>\n",
            LEFT, y, WIDTH, LEFT - 4, y + 4, value, unit);
    }
    for (unsigned i = 0; i < TIMES; i++) {
        double seconds = report->seconds / TIMES * i;

        (void)fprintf(chart->out, "<text x=\"%.1f\" y=\"%.0f\">", x_of(report, seconds), HEIGHT - 4);
        put_time(chart->out, false, report_realtime_usec(report, seconds));
        (void)fprintf(chart->out, "</text>\n");
    }
}

static void end_chart(const Chart *chart, const char *caption)
{
    (void)fprintf(chart->out, "</svg><figcaption>");
    put_text(chart->out, caption);
}

/* Draws the steps from `first` to `end` - 1 between two curves: along the upper one, and back along the lower one. */
static void put_piece(const Chart *chart, const double *lower, const double *upper, size_t first, size_t end)
{
    const Report *report = chart->report;

    for (size_t i = first; i < end; i++)
        (void)fprintf(chart->out, "%c%.1f %.1fH%.1f", i == first ? 'M' : 'L', x_of(report, report->times[i]),
                      y_of(chart, upper[i]), x_of(report, report->times[i + 1]));
    for (size_t i = end; i-- > first;)
        (void)fprintf(chart->out, "L%.1f %.1fH%.1f", x_of(report, report->times[i + 1]),
                      y_of(chart, lower[i]), x_of(report, report->times[i]));
    (void)fputc('Z', chart->out);
}

static void put_area(const Chart *chart, const double *lower, const double *upper, size_t colour)
{
    size_t n = chart->report->n_steps;

    (void)fprintf(chart->out, "<path class=\"n%zu\" d=\"", colour % N_COLOURS);
    for (size_t i = 0, first; i < n; i++) {
        for (first = i; i < n && upper[i] > lower[i]; i++)
            ;
        if (i > first)
            put_piece(chart, lower, upper, first, i);
    }
    (void)fprintf(chart->out, "\"/>\n");
}

static void put_curve(const Chart *chart, Curve curve, const void *what, unsigned colour)
{
    const Report *report = chart->report;
    bool drawn = false;

    (void)fprintf(chart->out, "<path class=\"l%u\" d=\"", colour);
    for (size_t i = 0; i < report->n_steps; i++) {
        double value = curve(report, what, i);

        if (value >= 0.0)
            (void)fprintf(chart->out, "%c%.1f %.1fH%.1f", drawn ? 'L' : 'M', x_of(report, report->times[i]),
                          y_of(chart, value), x_of(report, report->times[i + 1]));
        drawn = value >= 0.0;
    }
    (void)fprintf(chart->out, "\"/>\n");
}

static void put_key(FILE *out, const char *class, size_t colour, const char *what)
{
    (void)fprintf(out, "<span class=\"key %s%zu\"></span>%s", class, colour, what);
}

/* Workloads */

static double local_percent(const Report *report, const void *what, size_t step)
{
    int64_t local = view_number(((const ReportWorkload *)what)->rows[step], "local_permille", -1);

    return local < 0 ? -1.0 : (double)local / 10.0;
}

static double waits_percent(const Report *report, const void *what, size_t step)
{
    json_object *row = ((const ReportWorkload *)what)->rows[step];
    double run = (double)view_number(row, "run_permille", 0),
           wait = (double)view_number(row, "wait_permille", 0);

    return run + wait < REPORT_WANTED_MIN_PERMILLE ? -1.0 : wait * 100.0 / (run + wait);
}

/* `sums`: room for two numbers per step. */
static void put_nodes(const Chart *chart, const ReportWorkload *workload, double *sums)
{
    const Report *report = chart->report;
    double *lower = sums, *upper = sums + report->n_steps;

    for (size_t i = 0; i < report->n_steps; i++)
        upper[i] = 0.0;
    for (size_t k = 0; k < report->n_nodes; k++) {
        for (size_t i = 0; i < report->n_steps; i++) {
            lower[i] = upper[i];
            upper[i] += report_run(report, workload, i, report->nodes[k]);
        }
        if (workload->nodes[k] > 0.0)
            put_area(chart, lower, upper, k);
    }
}

static double most_cpus(const Report *report, const ReportWorkload *workload)
{
    double most = 0.0;

    for (size_t i = 0; i < report->n_steps; i++) {
        double sum = 0.0;

        for (size_t k = 0; k < report->n_nodes; k++)
            sum += report_run(report, workload, i, report->nodes[k]);
        most = MAX(most, sum);
    }
    return most;
}

static void put_workload(FILE *out, const Report *report, const ReportWorkload *workload, double *sums)
{
    Chart cpus = {.out = out, .report = report, .max = round_up(most_cpus(report, workload))};
    Chart shares = {.out = out, .report = report, .max = 100.0};
    char node[32];

    (void)fprintf(out, "<section><h2>");
    put_text(out, workload->name);
    (void)fprintf(out, "</h2>\n");
    begin_chart(&cpus, "CPUs in use, by node", "");
    put_nodes(&cpus, workload, sums);
    end_chart(&cpus, "CPUs in use");
    for (size_t k = 0; k < report->n_nodes; k++)
        if (workload->nodes[k] > 0.0) {
            (void)snprintf(node, sizeof(node), "node %" PRIu32, report->nodes[k]);
            put_key(out, "n", k % N_COLOURS, node);
        }
    (void)fprintf(out, "</figcaption></figure>\n");
    begin_chart(&shares, "local memory, and waiting", " %");
    put_curve(&shares, local_percent, workload, 0);
    put_curve(&shares, waits_percent, workload, 1);
    end_chart(&shares, "");
    put_key(out, "l", 0, "of its memory, local to its threads");
    put_key(out, "l", 1, "of the CPU time it wants, waited for");
    (void)fprintf(out, "</figcaption></figure></section>\n");
}

static void put_percent(FILE *out, double share)
{
    if (share < 0.0)
        (void)fprintf(out, "<td class=\"n\">-</td>");
    else
        (void)fprintf(out, "<td class=\"n\">%.1f %%</td>", share * 100.0);
}

static void put_table(FILE *out, const Report *report)
{
    (void)fprintf(out, "<table><tr><th>Workload</th><th class=\"n\">CPUs</th><th class=\"n\">Waits</th>"
                       "<th class=\"n\">Local memory</th><th>Nodes</th></tr>\n");
    for (size_t i = 0; i < report->n_workloads; i++) {
        const ReportWorkload *workload = &report->workloads[i];

        (void)fprintf(out, "<tr><td>");
        put_text(out, workload->name);
        (void)fprintf(out, "</td><td class=\"n\">%.2f</td>", workload->run);
        put_percent(out, workload->waits);
        put_percent(out, workload->local);
        (void)fprintf(out, "<td>");
        for (size_t k = 0; k < report->n_nodes; k++)
            if (workload->nodes[k] >= 0.005)
                (void)fprintf(out, "%" PRIu32 ": %.2f ", report->nodes[k], workload->nodes[k]);
        (void)fprintf(out, "</td></tr>\n");
    }
    (void)fprintf(out, "</table>\n");
}

/* The daemon */

static double cost_percent(const Report *report, const void *what, size_t step)
{
    double seconds = report->times[step + 1] - report->times[step];
    json_object *object = json_object_array_get_idx(report->steps, step);

    return seconds < 1.0 ? -1.0 : (double)view_number(object, "cpu_usec", 0) / 1e4 / seconds;
}

static double moved_mib(const Report *report, const void *what, size_t step)
{
    json_object *object = json_object_array_get_idx(report->steps, step);

    return (double)view_number(object, "memory_moved_bytes", 0) / (double)(1U << 20);
}

static double counted(const Report *report, const void *what, size_t step)
{
    return (double)view_number(json_object_array_get_idx(report->steps, step), what, 0);
}

static void put_numbers(FILE *out, const Report *report, const char *caption, Curve curve, const void *what)
{
    Chart chart = {.out = out, .report = report};
    double most = 0.0;

    for (size_t i = 0; i < report->n_steps; i++)
        most = MAX(most, curve(report, what, i));
    chart.max = round_up(most);
    begin_chart(&chart, caption, "");
    put_curve(&chart, curve, what, 0);
    end_chart(&chart, caption);
    (void)fprintf(out, "</figcaption></figure>\n");
}

/* The first of the last MOVES_MAX that is not before the beginning of the report. */
static size_t first_move(const Report *report)
{
    size_t n = view_length(report->moves), i = n - MIN(n, MOVES_MAX);

    while (i < n && (uint64_t)view_number(json_object_array_get_idx(report->moves, i), "realtime_usec", 0) <
                        report->begin_usec)
        i++;
    return i;
}

static void put_moves(FILE *out, const Report *report)
{
    size_t n = view_length(report->moves), first = first_move(report);

    (void)fprintf(out, "<section><h2>Actions</h2>\n<table>\n");
    for (size_t i = first; i < n; i++) {
        CLEANUP(view_text_done) ViewText text = {0};

        sentence_move(json_object_array_get_idx(report->moves, i), 0, &text);
        (void)fprintf(out, "<tr><td>");
        put_text(out, text.text ? text.text : "");
        (void)fprintf(out, "</td></tr>\n");
    }
    (void)fprintf(out, "</table>%s</section>\n", first == n ? "<p>None in the history.</p>" : "");
}

static void put_daemon(FILE *out, const Report *report)
{
    (void)fprintf(out, "<section><h2>numaplaced</h2>\n");
    put_numbers(out, report, "Homes set", counted, "homes");
    put_numbers(out, report, "CPUs lent", counted, "lends");
    put_numbers(out, report, "Memory moved, MiB", moved_mib, NULL);
    put_numbers(out, report, "Its CPU time, % of a CPU", cost_percent, NULL);
    (void)fprintf(out, "</section>\n");
}

void report_write_page(FILE *out, void *userdata)
{
    const Report *report = userdata;
    CLEANUP_FREE double *sums = calloc(report->n_steps * 2 + 1, sizeof(*sums));
    char bytes[32];

    (void)fprintf(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
        "<meta name=\"viewport\" content=\"width=device-width\"><title>numaplace report</title><style>%s</style>"
        "</head><body>\n<h1>numaplace, ",
        style);
    put_time(out, true, report->begin_usec);
    (void)fprintf(out, " to ");
    put_time(out, true, report->end_usec);
    (void)fprintf(out, "</h1>\n<p>%" PRIu64 " %s set, %" PRIu64 " %s lent, %s of memory moved.</p>\n",
                  report->n_homes, human_noun(report->n_homes, "home", "homes"), report->n_lends,
                  human_noun(report->n_lends, "CPU", "CPUs"),
                  human_bytes(report->moved_bytes, bytes, sizeof(bytes)));
    put_table(out, report);
    for (size_t i = 0; sums && i < MIN(report->n_workloads, DRAWN_MAX); i++)
        put_workload(out, report, &report->workloads[i], sums);
    if (!sums)
        (void)fprintf(out, "<p>There was not enough memory to draw the charts.</p>\n");
    put_daemon(out, report);
    put_moves(out, report);
    (void)fprintf(out, "</body></html>\n");
}
