/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* top: nodes, CPUs and workloads once a second, with the last ten minutes to go back to. A snapshot takes a
 * few kilobytes, or some 50 for 1,024 CPUs and 256 workloads, so snapshots are stored as they are. A record
 * is played at the same pace. */

#include "base/root.h"
#include "base/time.h"
#include "ctl/client.h"
#include "ctl/sentence.h"
#include "ctl/top/draw.h"
#include "ctl/top/recording.h"
#include "ctl/top/screen.h"
#include "ctl/top/traffic.h"
#include "ctl/verbs/verb.h"
#include "ctl/view.h"

#include <string.h>
#include <sys/ioctl.h>

#define INTERVAL_USEC USEC_PER_SEC
#define HISTORY       600U
/* For a terminal that does not report its width. */
#define COLUMNS_DEFAULT 80U
/* Threads listed of a workload. */
#define THREADS_MAX 500U
/* Lines of plans shown. */
#define PLANS_MAX 5000U

typedef struct Lines {
    char **text;
    size_t n, capacity;
} Lines;

typedef struct Top {
    const CtlOptions *options;
    sd_bus *bus; /* NULL: a record is played */
    TopMachine machine;
    TopTraffic traffic;
    bool counts; /* bandwidth is counted */
    TopRecording recording;
    size_t n_played; /* snapshots of it */
    TopSnapshot *ring[HISTORY];
    uint64_t n_taken;
    uint64_t back; /* snapshots behind the newest */
    TopChoice choice;
    Lines lines;
    char title[TOP_NAME_SIZE + 32];
    Frame frame;
    bool quit;
} Top;

static void lines_clear(Lines *lines)
{
    for (size_t i = 0; i < lines->n; i++)
        free(lines->text[i]);
    lines->n = 0;
}

static void top_done(Top *top)
{
    for (size_t i = 0; i < HISTORY; i++)
        top_snapshot_free(top->ring[i]);
    (void)json_object_put(top->machine.topology);
    top_recording_done(&top->recording);
    close_p(&top->traffic.root_fd);
    traffic_done(&top->traffic);
    lines_clear(&top->lines);
    free(top->lines.text);
    frame_done(&top->frame);
}

static int add_line(Lines *lines, const char *text)
{
    char *copy = strdup(text);

    if (copy && APPEND(lines->text, lines->capacity, lines->n, copy) == 0)
        return 0;
    free(copy);
    return -ENOMEM;
}

static int add_sentences(Lines *lines, const char *title, json_object *list, SentenceMaker make)
{
    if (title && view_length(list) > 0 && (add_line(lines, "") < 0 || add_line(lines, title) < 0))
        return -ENOMEM;
    for (size_t i = 0; i < view_length(list); i++) {
        CLEANUP(view_text_done) ViewText text = {0};

        make(json_object_array_get_idx(list, i), time_now_usec(), &text);
        if (text.failed || add_line(lines, text.text ? text.text : "") < 0)
            return -ENOMEM;
    }
    return 0;
}

static TopSnapshot *shown(const Top *top)
{
    return top->n_taken > 0 ? top->ring[(top->n_taken - 1 - top->back) % HISTORY] : NULL;
}

static CtlExit take(Top *top)
{
    TopSnapshot *snapshot = NULL;
    CtlExit code = CTL_EXIT_OK;

    if (top->bus)
        code = top_snapshot_take(top->bus, &top->machine, &snapshot);
    else if (top->n_played < top->recording.n)
        snapshot = TAKE_PTR(top->recording.snapshots[top->n_played++]);
    if (code == CTL_EXIT_OK && top->counts && snapshot && traffic_look(&top->traffic, snapshot) < 0) {
        top_snapshot_free(snapshot);
        return ctl_fail_oom();
    }
    top->choice.ended = !top->bus && top->n_played == top->recording.n;
    if (code != CTL_EXIT_OK || !snapshot)
        return code;
    top_snapshot_free(top->ring[top->n_taken % HISTORY]);
    top->ring[top->n_taken++ % HISTORY] = snapshot;
    /* The snapshot on screen stays the same. */
    if (top->back > 0 || top->choice.frozen)
        top->back = MIN(top->back + 1, MIN(top->n_taken, (uint64_t)HISTORY) - 1);
    return CTL_EXIT_OK;
}

/* Views shown instead */

static CtlExit show_threads(Top *top, const char *name)
{
    CLEANUP_JSON json_object *tasks = NULL;
    CtlExit code = client_call(top->bus, "ListTasks", &tasks, "siiu", name, 0, 0, THREADS_MAX);

    if (code != CTL_EXIT_OK)
        return code;
    (void)snprintf(top->title, sizeof(top->title), "THREADS OF %s", name);
    return add_sentences(&top->lines, NULL, tasks, sentence_task) < 0 ? ctl_fail_oom() : CTL_EXIT_OK;
}

static CtlExit show_explanation(Top *top, const char *name)
{
    CLEANUP_JSON json_object *explanation = NULL;
    CtlExit code = client_call(top->bus, "Explain", &explanation, "s", name);

    if (code != CTL_EXIT_OK)
        return code;
    (void)snprintf(top->title, sizeof(top->title), "WHY %s IS PLACED SO", name);
    if (add_line(&top->lines, view_string(explanation, "text")) < 0 ||
        add_sentences(&top->lines, "Would be done:", view_list(explanation, "would"), sentence_move) < 0 ||
        add_sentences(&top->lines, "Done:", view_list(explanation, "actions"), sentence_move) < 0 ||
        add_sentences(&top->lines, "Not done:", view_list(explanation, "refusals"), sentence_refusal) < 0)
        return ctl_fail_oom();
    return CTL_EXIT_OK;
}

static CtlExit show_plans(Top *top)
{
    CLEANUP_FREE char *text = strdup(shown(top)->plan);
    char *rest = text;

    if (!text)
        return ctl_fail_oom();
    (void)snprintf(top->title, sizeof(top->title), "PLANNED");
    for (const char *line; top->lines.n < PLANS_MAX && (line = strsep(&rest, "\n"));)
        if (*line && add_line(&top->lines, line) < 0)
            return ctl_fail_oom();
    return CTL_EXIT_OK;
}

static void close_lines(Top *top)
{
    top->choice.lines = NULL;
    top->choice.first = 0;
}

/* Ignores failures: the workload may have gone. */
static void look_into(Top *top, CtlExit (*show)(Top *, const char *))
{
    const TopWorkload *workload = shown(top) ? top_selected(shown(top), &top->choice) : NULL;

    if (!workload && top->bus)
        return;
    close_lines(top);
    lines_clear(&top->lines);
    if ((top->bus ? show(top, workload->name) : show_plans(top)) != CTL_EXIT_OK) {
        ctl_forget_failure();
        return;
    }
    top->choice.lines = top->lines.text;
    top->choice.n_lines = (uint32_t)top->lines.n;
    top->choice.title = top->title;
}

/* Keys */

static void type_filter(TopChoice *choice, int key)
{
    size_t n = strlen(choice->filter);

    if (key == SCREEN_KEY_ENTER)
        choice->filtering = false;
    else if (key == SCREEN_KEY_ESCAPE) {
        choice->filtering = false;
        choice->filter[0] = '\0';
    } else if (key == SCREEN_KEY_BACKSPACE && n > 0)
        choice->filter[n - 1] = '\0';
    else if (key > ' ' && key < 127 && n + 1 < sizeof(choice->filter)) {
        choice->filter[n] = (char)key;
        choice->filter[n + 1] = '\0';
    }
}

static void go(Top *top, int steps)
{
    uint32_t *at = top->choice.lines ? &top->choice.first : &top->choice.selected;

    *at = steps < 0 ? *at - MIN(*at, (uint32_t)-steps) : *at + (uint32_t)steps;
}

static void go_back(Top *top, bool forward)
{
    uint64_t kept = MIN(top->n_taken, (uint64_t)HISTORY);

    if (forward)
        top->back -= top->back > 0;
    else if (top->back + 1 < kept)
        top->back++;
}

static void leave(Top *top)
{
    if (top->choice.help)
        top->choice.help = false;
    else if (top->choice.lines)
        close_lines(top);
    else
        top->quit = true;
}

/* Starts or stops counting. Nothing can be counted for a record or for emulated nodes. */
static void count_bandwidth(Top *top)
{
    close_p(&top->traffic.root_fd);
    traffic_done(&top->traffic);
    top->traffic.root_fd = -1;
    top->counts = !top->counts && top->bus && shown(top) && shown(top)->rehearsal == 0;
    if (top->counts)
        top->traffic.root_fd = root_open("/");
    top->counts &= top->traffic.root_fd >= 0;
}

static void press(Top *top, int key)
{
    TopChoice *choice = &top->choice;

    if (key == SCREEN_KEY_GONE) {
        top->quit = true;
        return;
    }
    if (choice->filtering) {
        type_filter(choice, key);
        return;
    }
    switch (key) {
    case 'q':
    case SCREEN_KEY_ESCAPE:
        leave(top);
        break;
    case 'h':
    case '?':
        choice->help = !choice->help;
        break;
    case 's':
        choice->sort = (choice->sort + 1) % TOP_SORTS;
        break;
    case '/':
        choice->filtering = true;
        break;
    case 'b':
        count_bandwidth(top);
        break;
    case ' ':
        choice->frozen = !choice->frozen;
        top->back = choice->frozen ? top->back : 0;
        break;
    case SCREEN_KEY_ENTER:
        look_into(top, show_threads);
        break;
    case 'e':
        look_into(top, show_explanation);
        break;
    case SCREEN_KEY_UP:
    case SCREEN_KEY_DOWN:
        go(top, key == SCREEN_KEY_UP ? -1 : 1);
        break;
    case SCREEN_KEY_PAGE_UP:
    case SCREEN_KEY_PAGE_DOWN:
        go(top, key == SCREEN_KEY_PAGE_UP ? -10 : 10);
        break;
    case SCREEN_KEY_LEFT:
    case SCREEN_KEY_RIGHT:
        go_back(top, key == SCREEN_KEY_RIGHT);
        break;
    default:
        break;
    }
}

/* Showing */

static CtlExit draw(Top *top, unsigned rows, unsigned columns)
{
    const TopSnapshot *snapshot = shown(top), *newest = top->ring[(top->n_taken - 1) % HISTORY];

    top->choice.back_sec =
        (uint32_t)((newest->realtime_usec - MIN(newest->realtime_usec, snapshot->realtime_usec)) /
                   USEC_PER_SEC);
    return top_draw(snapshot, &top->choice, rows, columns, &top->frame) < 0 ? ctl_fail_oom() : CTL_EXIT_OK;
}

static unsigned once_columns(const Top *top)
{
    struct winsize size;

    if (top->choice.whole)
        return top_columns(shown(top));
    if (top->options->columns > 0)
        return top->options->columns;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : COLUMNS_DEFAULT;
}

static CtlExit show_once(Top *top)
{
    CLEANUP_JSON json_object *object = NULL;
    CtlExit code;

    /* The end of a record. */
    if (!top->bus)
        top->n_played = top->recording.n - 1;
    code = take(top);
    if (code != CTL_EXIT_OK)
        return code;
    if (top->options->json != CTL_JSON_OFF) {
        object = top_snapshot_json(shown(top));
        return object ? ctl_print_json(top->options, object) : ctl_fail_oom();
    }
    top->choice.once = true;
    top->choice.whole = !top->options->terminal;
    code = draw(top, top_rows(shown(top)), once_columns(top));
    if (code == CTL_EXIT_OK)
        frame_print(&top->frame, stdout);
    return code;
}

static CtlExit show(Top *top)
{
    unsigned rows, columns;
    CtlExit code;

    screen_size(&rows, &columns);
    code = draw(top, rows, columns);
    if (code == CTL_EXIT_OK)
        screen_show(&top->frame);
    return code;
}

static CtlExit loop(Top *top)
{
    uint64_t next = time_now_usec() + INTERVAL_USEC; /* the first snapshot was taken */
    CtlExit code = CTL_EXIT_OK;

    while (code == CTL_EXIT_OK && !top->quit) {
        uint64_t now = time_now_usec();

        if (now >= next) {
            code = take(top);
            next = MAX(next + INTERVAL_USEC, now);
        }
        if (code == CTL_EXIT_OK)
            code = show(top);
        now = time_now_usec();
        if (code == CTL_EXIT_OK)
            press(top, screen_key(next > now ? (int)((next - now) / USEC_PER_MSEC) + 1 : 0));
    }
    return code;
}

/* Reports failures when the terminal is restored. */
static CtlExit run(Top *top)
{
    CtlExit code = take(top);

    if (code != CTL_EXIT_OK)
        return code;
    if (!screen_open(top->options->colour))
        return ctl_fail(CTL_EXIT_FAILURE, "this terminal cannot be used (TERM=%s); --once needs none",
                        getenv("TERM") ? getenv("TERM") : "");
    ctl_fail_later(true);
    code = loop(top);
    screen_close();
    ctl_fail_later(false);
    return code;
}

static CtlExit verb_top(const CtlOptions *options, int argc, char **argv)
{
    CLEANUP(top_done) Top top = {.options = options, .traffic = {.root_fd = -1}};
    CLEANUP_BUS sd_bus *bus = NULL;
    CtlExit code = argc > 0 ? top_recording_read(argv[0], &top.recording) : client_connect(options, &bus);

    if (code != CTL_EXIT_OK)
        return code;
    top.bus = bus;
    if (options->once || options->json != CTL_JSON_OFF || !options->terminal || !isatty(STDIN_FILENO))
        return show_once(&top);
    return run(&top);
}

const CtlVerbRow ctl_verb_top = {
    .name = "top",
    .arguments = "[FILE]",
    .max = 1,
    .accepts = CTL_ACCEPTS(ONCE),
    .help = "nodes, CPUs and workloads, once a second; FILE: of a record",
    .run = verb_top,
};
