/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* From top to bottom: two lines about the daemon, a line for each node with a letter for each of its CPUs, workloads,
 * the last actions, the keys. A terminal of 24 lines has room for some of each; the rest is counted. */

#include "ctl/top/draw.h"

#include "base/human.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_LINES        2U
#define BAR               10U
#define MEMORY_COLUMNS    22U
#define BANDWIDTH_COLUMNS 13U
/* Of a node's line, before its memory. */
#define NODE_COLUMNS 29U
/* Of a workload's line, without its name. */
#define REST_WIDTH  64U
#define NODES_WIDTH 7U
#define NAME_MIN    16U
/* Nodes get up to a third of the lines, actions a sixth. */
#define NODES_PART 3U
#define MOVES_PART 6U

static const struct {
    char letter;
    FrameStyle style;
} cpu_letters[TOP_CPU_STATES] = {
    [TOP_CPU_ABSENT] = {' ', FRAME_PLAIN}, [TOP_CPU_IDLE] = {'.', FRAME_DIM},
    [TOP_CPU_BUSY] = {'o', FRAME_GOOD},    [TOP_CPU_OVERLOADED] = {'#', FRAME_BAD},
    [TOP_CPU_LENT] = {'L', FRAME_WARN},
};

static const char *const sort_names[TOP_SORTS] = {"policy", "run", "wait", "memory", "lent", "name"};

/* The daemon */

static void draw_daemon(const TopSnapshot *s, Frame *frame)
{
    char up[64];
    unsigned column =
        frame_text(frame, 0, 0, FRAME_TITLE, "numaplaced %s: %s, %s", s->version, s->state, s->mode);

    if (s->rehearsal > 0)
        column = frame_text(frame, 0, column, FRAME_WARN, ", rehearsal");
    (void)frame_text(frame, 0, column, FRAME_PLAIN, "; up %s; cost %.1f of %.1f %% of a CPU",
                     human_span(s->uptime_usec / 1000000 * 1000000, up, sizeof(up)),
                     (double)s->cost_permille / 10, (double)s->max_cost_permille / 10);
}

static void draw_record(const TopSnapshot *s, const TopChoice *choice, Frame *frame)
{
    unsigned column = frame_text(frame, 0, 0, FRAME_TITLE, "a record");

    if (s->rehearsal > 0)
        column = frame_text(frame, 0, column, FRAME_WARN, ", rehearsal");
    column = frame_text(frame, 0, column, FRAME_PLAIN, "; %.1f s from its beginning",
                        (double)s->uptime_usec / 1e6);
    if (choice->ended && choice->back_sec == 0)
        (void)frame_text(frame, 0, column, FRAME_WARN, ", its end");
}

static void draw_head(const TopSnapshot *s, const TopChoice *choice, Frame *frame)
{
    char moved[64];
    unsigned column;

    if (s->recorded)
        draw_record(s, choice, frame);
    else
        draw_daemon(s, frame);
    column = frame_text(frame, 1, 0, FRAME_PLAIN, "%u %s: %u idle, %u overloaded, %u lent; %" PRIu64 " %s",
                        s->n_cpus, human_noun(s->n_cpus, "CPU", "CPUs"), s->n_idle, s->n_overloaded,
                        s->n_leases, s->n_lends, human_noun(s->n_lends, "lend", "lends"));
    if (!s->recorded)
        column = frame_text(frame, 1, column, FRAME_PLAIN, ", %" PRIu64 " %s", s->n_homes,
                            human_noun(s->n_homes, "home", "homes"));
    column = frame_text(frame, 1, column, FRAME_PLAIN, ", %s moved",
                        human_bytes(s->moved_bytes, moved, sizeof(moved)));
    if (choice->back_sec > 0)
        (void)frame_text(frame, 1, column + 2, FRAME_WARN, "%u s ago", choice->back_sec);
    else if (choice->frozen)
        (void)frame_text(frame, 1, column + 2, FRAME_WARN, "frozen");
}

/* Nodes */

/* The most important state of the next `n` CPUs of a node, for one letter. */
static TopCpuState worst(const TopSnapshot *s, uint32_t node, uint32_t *cpu, uint32_t n)
{
    TopCpuState state = TOP_CPU_ABSENT;

    for (; *cpu < s->n_cpus && n > 0; (*cpu)++)
        if (s->cpus[*cpu].node == node) {
            state = MAX(state, (TopCpuState)s->cpus[*cpu].state);
            n--;
        }
    return state;
}

/* Puts a blank between last-level caches if there is also room for a letter for each CPU. */
static void draw_cpus(const TopSnapshot *s, uint32_t node, Frame *frame, unsigned row, unsigned column)
{
    uint32_t n = s->nodes[node].n_cpus, room = frame->columns > column ? frame->columns - column : 0;
    uint32_t each = room > 0 ? (n + room - 1) / room : 1, cpu = 0, n_llcs = 0, last = UINT32_MAX;

    for (uint32_t i = 0; i < s->n_cpus; i++)
        if (s->cpus[i].node == node && s->cpus[i].llc != last) {
            last = s->cpus[i].llc;
            n_llcs++;
        }
    for (uint32_t drawn = 0, llc = UINT32_MAX; drawn < n && column < frame->columns; drawn += each) {
        TopCpuState state = worst(s, node, &cpu, each);

        if (each == 1 && n + n_llcs <= room && llc != UINT32_MAX && s->cpus[cpu - 1].llc != llc)
            column++;
        llc = cpu > 0 ? s->cpus[cpu - 1].llc : llc;
        column = frame_fill(frame, row, column, cpu_letters[state].style, cpu_letters[state].letter, 1);
    }
}

static bool any_bandwidth(const TopSnapshot *s)
{
    bool any = false;

    for (uint32_t i = 0; i < s->n_nodes; i++)
        any |= s->nodes[i].bandwidth_known;
    return any;
}

static void draw_node(const TopSnapshot *s, uint32_t i, Frame *frame, unsigned row)
{
    const TopNode *node = &s->nodes[i];
    uint32_t permille = node->n_cpus > 0 ? node->busy_permille / node->n_cpus : 0;
    unsigned filled = MIN((permille * BAR + 500) / 1000, BAR), column;
    char used[64], all[64];

    column = frame_text(frame, row, 0, FRAME_PLAIN, "node %-3u %3u %% [", node->number, permille / 10);
    column = frame_fill(frame, row, column, FRAME_GOOD, '|', filled);
    column = frame_fill(frame, row, column, FRAME_DIM, ' ', BAR - filled);
    column = frame_text(frame, row, column, FRAME_PLAIN, "] ");
    if (node->free_known)
        (void)frame_text(
            frame, row, column, FRAME_PLAIN, "%s of %s",
            human_bytes(node->memory_bytes - MIN(node->free_bytes, node->memory_bytes), used, sizeof(used)),
            human_bytes(node->memory_bytes, all, sizeof(all)));
    else if (node->memory_bytes > 0)
        (void)frame_text(frame, row, column, FRAME_PLAIN, "%s",
                         human_bytes(node->memory_bytes, all, sizeof(all)));
    column += MEMORY_COLUMNS;
    if (node->bandwidth_known)
        (void)frame_text(frame, row, column, FRAME_PLAIN, "%s/s",
                         human_bytes(node->bandwidth_bytes, all, sizeof(all)));
    draw_cpus(s, i, frame, row, column + (any_bandwidth(s) ? BANDWIDTH_COLUMNS : 0));
}

static unsigned draw_nodes(const TopSnapshot *s, bool all, Frame *frame, unsigned row)
{
    unsigned room = all ? s->n_nodes : MAX(frame->rows / NODES_PART, 2U);
    uint32_t n = s->n_nodes <= room ? s->n_nodes : room - 1;

    for (uint32_t i = 0; i < n; i++)
        draw_node(s, i, frame, row++);
    if (n < s->n_nodes)
        (void)frame_text(frame, row++, 0, FRAME_DIM, "and %u more %s", s->n_nodes - n,
                         human_noun(s->n_nodes - n, "node", "nodes"));
    return row;
}

/* Workloads */

static int compare(const TopWorkload *a, const TopWorkload *b, TopSort sort)
{
    switch (sort) {
    case TOP_SORT_RUN:
        return (a->run_permille < b->run_permille) - (a->run_permille > b->run_permille);
    case TOP_SORT_WAIT:
        return (a->wait_permille < b->wait_permille) - (a->wait_permille > b->wait_permille);
    case TOP_SORT_MEMORY:
        return (a->bytes < b->bytes) - (a->bytes > b->bytes);
    case TOP_SORT_LENT:
        return (a->leases < b->leases) - (a->leases > b->leases);
    case TOP_SORT_NAME:
        return strcmp(a->name, b->name);
    default:
        return 0;
    }
}

static int compare_lines(const void *a, const void *b, void *userdata)
{
    const TopWorkload *const *x = a, *const *y = b;
    int r = compare(*x, *y, *(const TopSort *)userdata);

    return r ? r : (*x > *y) - (*x < *y);
}

/* The workloads that pass the filter, sorted; malloc'd. */
static const TopWorkload **lines_of(const TopSnapshot *s, const TopChoice *choice, uint32_t *ret_n)
{
    const TopWorkload **lines = calloc(MAX(s->n_workloads, 1U), sizeof(const TopWorkload *));
    TopSort sort = choice->sort;
    uint32_t n = 0;

    for (uint32_t i = 0; lines && i < s->n_workloads; i++)
        if (!*choice->filter || strcasestr(s->workloads[i].name, choice->filter))
            lines[n++] = &s->workloads[i];
    if (lines && n > 1)
        qsort_r(lines, n, sizeof(const TopWorkload *), compare_lines, &sort);
    *ret_n = lines ? n : 0;
    return lines;
}

const TopWorkload *top_selected(const TopSnapshot *snapshot, const TopChoice *choice)
{
    uint32_t n;
    const TopWorkload **lines = lines_of(snapshot, choice, &n);
    const TopWorkload *selected = choice->selected < n ? lines[choice->selected] : NULL;

    free(lines);
    return selected;
}

typedef struct Widths {
    unsigned name, nodes;
} Widths;

/* Names get the remaining width, or what they need if nothing is cut. */
static Widths widths_of(const TopSnapshot *s, const TopChoice *choice, const Frame *frame)
{
    Widths widths = {
        .name = CLAMP(frame->columns, REST_WIDTH + NAME_MIN, REST_WIDTH + TOP_NAME_SIZE) - REST_WIDTH,
        .nodes = NODES_WIDTH,
    };

    if (!choice->whole)
        return widths;
    widths.name = NAME_MIN;
    for (uint32_t i = 0; i < s->n_workloads; i++) {
        const TopWorkload *w = &s->workloads[i];

        widths.name = MAX(widths.name, (unsigned)strlen(w->name));
        widths.nodes = MAX(widths.nodes, (unsigned)strlen(w->nodes) + (w->observed ? 2U : 0U));
    }
    return widths;
}

static void draw_titles(const Widths *widths, Frame *frame, unsigned row)
{
    (void)frame_text(frame, row, 0, FRAME_TITLE, "WORKLOAD");
    (void)frame_text(frame, row, widths->name, FRAME_TITLE, " %-8s %-*s %6s %6s %4s %7s %9s %9s", "MODE",
                     (int)widths->nodes, "NODES", "RUN", "WAIT", "LENT", "THREADS", "MEMORY", "MOVING");
}

static void draw_workload(const TopWorkload *w, const Widths *widths, Frame *frame, unsigned row, bool marked)
{
    FrameStyle style = w->paused ? FRAME_WARN : w->observed ? FRAME_DIM : FRAME_PLAIN;
    bool brackets = w->observed && *w->nodes;
    char set[TOP_NODES_SIZE], nodes[TOP_NODES_SIZE + 2], memory[64], moving[64];

    top_copy_set(set, MIN(widths->nodes - (brackets ? 2U : 0U) + 1U, TOP_NODES_SIZE),
                 *w->nodes ? w->nodes : "-");
    (void)snprintf(nodes, sizeof(nodes), brackets ? "(%s)" : "%s", set);
    (void)frame_text(frame, row, 0, style, "%s", w->name);
    (void)frame_fill(frame, row, widths->name, style, ' ', frame->columns);
    (void)frame_text(frame, row, widths->name, style, " %-8.8s %-*s %6.2f %6.2f %4u %7u %9s %9s",
                     w->paused     ? "paused"
                     : w->observed ? "observed"
                                   : w->mode,
                     (int)widths->nodes, nodes, (double)w->run_permille / 1000,
                     (double)w->wait_permille / 1000, w->leases, w->tasks,
                     w->bytes > 0 ? human_bytes(w->bytes, memory, sizeof(memory)) : "-",
                     w->moving_bytes > 0 ? human_bytes(w->moving_bytes, moving, sizeof(moving)) : "-");
    if (marked)
        frame_mark(frame, row, FRAME_MARK);
}

static int draw_workloads(const TopSnapshot *s, TopChoice *choice, Frame *frame, unsigned row, unsigned end)
{
    unsigned room = end > row + 1 ? end - row - 1 : 0;
    Widths widths = widths_of(s, choice, frame);
    uint32_t n;
    const TopWorkload **lines = lines_of(s, choice, &n);

    if (!lines)
        return -ENOMEM;
    choice->selected = n > 0 ? MIN(choice->selected, n - 1) : 0;
    if (choice->selected < choice->first)
        choice->first = choice->selected;
    if (room > 0 && choice->selected >= choice->first + room)
        choice->first = choice->selected - room + 1;
    choice->first = MIN(choice->first, n > room ? n - room : 0);

    draw_titles(&widths, frame, row);
    for (uint32_t i = choice->first; i < n && i < choice->first + room; i++)
        draw_workload(lines[i], &widths, frame, row + 1 + (i - choice->first),
                      i == choice->selected && !choice->once);
    if (n == 0)
        (void)frame_text(frame, row + 1, 0, FRAME_DIM,
                         s->n_workloads > 0 ? "no workload has that in its name" : "no workload");
    free(lines);
    return 0;
}

static void draw_moves(const TopSnapshot *s, Frame *frame, unsigned row, unsigned end)
{
    (void)frame_text(frame, row++, 0, FRAME_TITLE, "LAST ACTIONS");
    for (unsigned i = 0; i < TOP_MOVES && row < end; i++)
        (void)frame_text(frame, row++, 0, FRAME_PLAIN, "%s", s->moves[i]);
}

static void draw_keys(const TopSnapshot *s, const TopChoice *choice, Frame *frame)
{
    unsigned row = frame->rows - 1, column;

    if (choice->filtering) {
        (void)frame_text(frame, row, 0, FRAME_MARK, "part of a name: %s_", choice->filter);
        return;
    }
    column = frame_text(frame, row, 0, FRAME_DIM, "q quit  h help  s sort: %s  / filter",
                        sort_names[choice->sort]);
    if (*choice->filter)
        column = frame_text(frame, row, column, FRAME_WARN, " (%s)", choice->filter);
    (void)frame_text(frame, row, column, FRAME_DIM, "  %s  space freeze",
                     s->recorded ? "Enter plans" : "Enter threads  e explain");
}

static void draw_help(Frame *frame)
{
    static const char *const lines[] = {
        "CPUs, grouped by last-level cache:",
        "              . idle   o busy   # threads wait for it   L lent",
        "On a narrow terminal a letter stands for several CPUs: the worst of them.",
        "NODES in brackets: where an observed workload would be placed.",
        "RUN and WAIT are CPUs' worth of time. MOVING is memory that is being moved.",
        "",
        "up, down      select a workload       s         sort by another column",
        "Enter         its threads             /         filter by part of a name",
        "e             why it is placed there  space     freeze or continue",
        "              (both of a record: the plans of this second)",
        "left, right   back in time, and       b         what nodes read and write, where",
        "              forward: ten minutes              that is counted (resctrl)",
        "q, Escape     back, or quit           h, ?      this help",
    };

    for (unsigned i = 0; i < ARRAY_SIZE(lines) && HEAD_LINES + 1 + i < frame->rows; i++)
        (void)frame_text(frame, HEAD_LINES + 1 + i, 0, FRAME_PLAIN, "%s", lines[i]);
}

static void draw_lines(TopChoice *choice, Frame *frame)
{
    unsigned room = frame->rows > HEAD_LINES + 2 ? frame->rows - HEAD_LINES - 2 : 0;

    choice->first = MIN(choice->first, choice->n_lines > room ? choice->n_lines - room : 0);
    (void)frame_text(frame, HEAD_LINES, 0, FRAME_TITLE, "%s", choice->title);
    for (uint32_t i = choice->first; i < choice->n_lines && i < choice->first + room; i++)
        (void)frame_text(frame, HEAD_LINES + 1 + (i - choice->first), 0, FRAME_PLAIN, "%s", choice->lines[i]);
}

unsigned top_rows(const TopSnapshot *snapshot)
{
    return HEAD_LINES + snapshot->n_nodes + 1 + MAX(snapshot->n_workloads, 1U) + 1 + TOP_MOVES;
}

unsigned top_columns(const TopSnapshot *snapshot)
{
    /* Each byte of a text may become four, "\\xNN". */
    unsigned columns = 4 * MAX(TOP_MOVE_SIZE, REST_WIDTH + TOP_NAME_SIZE + TOP_NODES_SIZE);

    for (uint32_t i = 0; i < snapshot->n_nodes; i++)
        columns =
            MAX(columns, NODE_COLUMNS + MEMORY_COLUMNS + BANDWIDTH_COLUMNS + 2 * snapshot->nodes[i].n_cpus);
    return columns;
}

int top_draw(const TopSnapshot *snapshot, TopChoice *choice, unsigned rows, unsigned columns, Frame *ret)
{
    unsigned row, moves;
    int r = frame_clear(ret, rows, columns);

    if (r < 0 || rows < HEAD_LINES + 2)
        return r;
    draw_head(snapshot, choice, ret);
    if (choice->help)
        draw_help(ret);
    else if (choice->lines)
        draw_lines(choice, ret);
    else {
        row = draw_nodes(snapshot, choice->once, ret, HEAD_LINES);
        moves = choice->once ? row + 1 + MAX(snapshot->n_workloads, 1U)
                             : rows - 1 - MIN(MAX(rows / MOVES_PART, 2U), rows - 1);
        r = draw_workloads(snapshot, choice, ret, row, moves);
        if (moves > row)
            draw_moves(snapshot, ret, moves, choice->once ? rows : rows - 1);
    }
    if (!choice->once)
        draw_keys(snapshot, choice, ret);
    return r;
}
