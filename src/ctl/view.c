/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Every verb keeps its result as a JSON value, so that `--json` and the table cannot disagree; this file only
 * formats. JSON has the exact numbers. Here they are rounded to what can be compared by eye. */

#include "ctl/view.h"

#include "base/human.h"
#include "base/parse.h"
#include "ctl/terminal/style.h"
#include "ctl/terminal/table.h"
#include "ctl/text.h"

#include <inttypes.h>
#include <json-c/linkhash.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

const char *view_string(json_object *object, const char *key)
{
    json_object *value = json_object_object_get(object, key);
    const char *text = value ? json_object_get_string(value) : NULL;

    return text ? text : "";
}

int64_t view_number(json_object *object, const char *key, int64_t fallback)
{
    json_object *value = json_object_object_get(object, key);

    return value ? json_object_get_int64(value) : fallback;
}

bool view_bool(json_object *object, const char *key)
{
    return json_object_get_boolean(json_object_object_get(object, key));
}

json_object *view_list(json_object *object, const char *key)
{
    json_object *value = json_object_object_get(object, key);

    return json_object_is_type(value, json_type_array) ? value : NULL;
}

size_t view_length(json_object *list)
{
    return list ? json_object_array_length(list) : 0;
}

static char *view_memory(json_object *list)
{
    CLEANUP(view_text_done) ViewText text = {0};
    char buf[64];

    if (view_length(list) == 0)
        return strdup("-");
    for (size_t i = 0; i < view_length(list); i++) {
        json_object *node = json_object_array_get_idx(list, i);

        view_text_add(&text, "%s%" PRId64 ": %s", i ? ", " : "", view_number(node, "node", 0),
                      human_bytes((uint64_t)view_number(node, "bytes", 0), buf, sizeof(buf)));
    }
    return text.failed ? NULL : TAKE_PTR(text.text);
}

/* "(0-3)" from the key would_KEY. */
static char *view_would(json_object *object, const char *key)
{
    CLEANUP(view_text_done) ViewText text = {0};
    char would[64];

    (void)snprintf(would, sizeof(would), "would_%s", key);
    if (!*view_string(object, would))
        return strdup("-");
    view_text_add(&text, "(%s)", view_string(object, would));
    return text.failed ? NULL : TAKE_PTR(text.text);
}

char *view_member(json_object *object, const char *key, ViewKind kind)
{
    json_object *value = json_object_object_get(object, key);
    const char *text = value ? json_object_get_string(value) : NULL;
    int64_t number = value ? json_object_get_int64(value) : 0;
    char buf[64];

    if (!text || !*text)
        return kind == VIEW_HOME ? view_would(object, key) : strdup("-");
    if (number == 0 && (kind == VIEW_SHARE || kind == VIEW_SPAN || kind == VIEW_SIZE))
        return strdup("-");
    switch (kind) {
    case VIEW_TEXT:
    case VIEW_LONG:
    case VIEW_SET:
    case VIEW_HOME:
        return strdup(text);
    case VIEW_NUMBER:
        return strdup(number < 0 ? "-" : text);
    case VIEW_PERMILLE:
    case VIEW_SHARE:
        (void)snprintf(buf, sizeof(buf), "%.1f %%", (double)number / 10);
        break;
    case VIEW_CPUS:
        (void)snprintf(buf, sizeof(buf), "%.2f", (double)number / 1000);
        break;
    case VIEW_BYTES:
    case VIEW_SIZE:
        (void)human_bytes((uint64_t)number, buf, sizeof(buf));
        break;
    case VIEW_SPAN:
        (void)human_span((uint64_t)number, buf, sizeof(buf));
        break;
    case VIEW_BOOL:
        return strdup(json_object_get_boolean(value) ? "yes" : "no");
    case VIEW_MEMORY:
        return view_memory(view_list(object, key));
    }
    return strdup(buf);
}

CtlExit view_print_table(const CtlOptions *options, json_object *list, const ViewColumn *columns,
                         size_t n_columns)
{
    static const int flags[] = {
        [VIEW_LONG] = SCOLS_FL_TRUNC,     [VIEW_SET] = SCOLS_FL_WRAP,    [VIEW_NUMBER] = SCOLS_FL_RIGHT,
        [VIEW_PERMILLE] = SCOLS_FL_RIGHT, [VIEW_CPUS] = SCOLS_FL_RIGHT,  [VIEW_BYTES] = SCOLS_FL_RIGHT,
        [VIEW_SPAN] = SCOLS_FL_RIGHT,     [VIEW_MEMORY] = SCOLS_FL_WRAP, [VIEW_HOME] = SCOLS_FL_WRAP,
        [VIEW_SHARE] = SCOLS_FL_RIGHT,    [VIEW_SIZE] = SCOLS_FL_RIGHT,
    };
    TableColumn table_columns[VIEW_COLUMNS_MAX];
    CLEANUP(table_free_p) Table *table = NULL;

    assert(n_columns <= VIEW_COLUMNS_MAX);
    for (size_t c = 0; c < n_columns; c++)
        table_columns[c] = (TableColumn){columns[c].title, flags[columns[c].kind]};
    if (table_new(options, table_columns, n_columns, &table) < 0)
        return ctl_fail_oom();

    for (size_t i = 0; i < view_length(list); i++)
        for (size_t c = 0; c < n_columns; c++) {
            CLEANUP_FREE char *text =
                view_member(json_object_array_get_idx(list, i), columns[c].key, columns[c].kind);

            if (!text)
                return ctl_fail_oom();
            table_add(table, NULL, text);
        }
    return table_print(table, stdout) < 0 ? ctl_fail_oom() : CTL_EXIT_OK;
}

CtlExit view_print_list(const CtlOptions *options, json_object *list, const ViewColumn *columns,
                        size_t n_columns)
{
    if (options->json != CTL_JSON_OFF)
        return ctl_print_json(options, list);
    return view_print_table(options, list, columns, n_columns);
}

#define TITLE_WIDTH 11 /* of "Description", the longest */

void view_line(const char *title, const char *format, ...)
{
    CLEANUP_FREE char *printable = NULL;
    va_list ap;

    va_start(ap, format);
    printable = text_vprintable(format, ap);
    va_end(ap);
    (void)printf("%*s%s %s\n", TITLE_WIDTH, title, *title ? ":" : " ",
                 printable ? printable : "(out of memory)");
}

/* "48 MB in 2 migration requests, 1 MB could not be moved; 12 MB under way" */
static void view_moving_line(json_object *object)
{
    int64_t orders = view_number(object, "memory_orders", 0),
            moving = view_number(object, "memory_moving", 0);
    uint64_t refused = (uint64_t)view_number(object, "memory_refused_bytes", 0);
    CLEANUP(view_text_done) ViewText text = {0};
    char buf[64];

    if (orders > 0)
        view_text_add(&text, "%s in %" PRId64 " %s",
                      human_bytes((uint64_t)view_number(object, "memory_moved_bytes", 0), buf, sizeof(buf)),
                      orders, human_noun(orders, "migration request", "migration requests"));
    if (orders > 0 && refused > 0)
        view_text_add(&text, ", %s could not be moved", human_bytes(refused, buf, sizeof(buf)));
    if (moving > 0)
        view_text_add(&text, "%s%s under way", orders > 0 ? "; " : "",
                      human_bytes((uint64_t)view_number(object, "memory_todo_bytes", 0), buf, sizeof(buf)));
    if (text.len > 0 && !text.failed)
        view_line("Moved", "%s", text.text);
}

void view_memory_line(json_object *object)
{
    CLEANUP_FREE char *text = view_member(object, "memory", VIEW_MEMORY);
    int64_t unknown = view_number(object, "memory_unknown", 0),
            stall = view_number(object, "memory_stall_permille", -1),
            traffic = view_number(object, "memory_traffic_bytes_per_sec", 0);
    char age[64], bytes[64], fetches[96] = "", more[64] = "";

    if (!*view_string(object, "memory_evidence"))
        return;
    if (unknown > 0)
        (void)snprintf(more, sizeof(more), "; of %" PRId64 " %s not known", unknown,
                       human_noun(unknown, "process", "processes"));
    view_line("Memory", "%s (%s, %s old%s)", text ? text : "?", view_string(object, "memory_evidence"),
              human_span((uint64_t)view_number(object, "memory_age_usec", 0), age, sizeof(age)), more);
    if (traffic > 0)
        (void)snprintf(fetches, sizeof(fetches), ", and fetches at least %s/s",
                       human_bytes((uint64_t)traffic, bytes, sizeof(bytes)));
    if (stall >= 0)
        view_line("Stalls", "waits for memory at most %" PRId64 " %% of its time in user mode%s",
                  (stall + 9) / 10, fetches);
    if (view_bool(object, "memory_striped"))
        view_line("Interleaved", "over the nodes of its home, or all nodes if it needs them, in 2 MB units");
    view_moving_line(object);
}

void view_rest(size_t shown, int64_t all, const char *where)
{
    if (all > (int64_t)shown)
        (void)printf("  ... %" PRId64 " in all%s\n", all, where);
}

CtlExit view_counters(json_object *object, const char *title, const char *key)
{
    CLEANUP(view_text_done) ViewText text = {0};
    json_object *counters = json_object_object_get(object, key);
    json_object_iter it;

    if (!json_object_is_type(counters, json_type_object))
        return CTL_EXIT_OK;
    json_object_object_foreachC(counters, it)
    {
        if (json_object_get_uint64(it.val) > 0)
            view_text_add(&text, "%s%s %" PRIu64, text.len > 0 ? ", " : "", it.key,
                          json_object_get_uint64(it.val));
    }
    if (text.failed)
        return ctl_fail_oom();
    if (text.len > 0)
        view_line(title, "%s", text.text);
    return CTL_EXIT_OK;
}

void view_would_lines(json_object *object)
{
    int64_t now = view_number(object, "local_permille", -1),
            then = view_number(object, "would_local_permille", -1),
            gain = view_number(object, "would_gain_permille", INT64_MIN);

    if (!view_bool(object, "observed"))
        return;
    if (*view_string(object, "would_home"))
        view_line("Would be", "CPUs %s on nodes %s", view_string(object, "would_home"),
                  view_string(object, "would_home_nodes"));
    else
        view_line("Would be", "none: it would not be confined either");
    if (view_bool(object, "would_spread_if_private"))
        view_line("", "or on more nodes, if its threads turn out to share little memory");
    if (now >= 0 && then >= 0)
        view_line("", "%.1f %% of its memory local to its threads, %.1f %% now", (double)then / 10,
                  (double)now / 10);
    if (gain != INT64_MIN)
        view_line("", "about %+ld %% work in the same time (%+ld to %+ld %%)", lround((double)gain / 10),
                  lround((double)view_number(object, "would_gain_least_permille", 0) / 10),
                  lround((double)view_number(object, "would_gain_most_permille", 0) / 10));
}

static void add_gain(ViewText *text, json_object *object, const char *what, const char *key)
{
    char before[64], before_noise[64], after[64], after_noise[64];

    (void)snprintf(before, sizeof(before), "gain_%s_before_permille", key);
    (void)snprintf(before_noise, sizeof(before_noise), "gain_%s_before_noise_permille", key);
    (void)snprintf(after, sizeof(after), "gain_%s_permille", key);
    (void)snprintf(after_noise, sizeof(after_noise), "gain_%s_noise_permille", key);
    if (view_number(object, before, -1) < 0 || view_number(object, after, -1) < 0)
        return;
    view_text_add(
        text, "%s%s %.1f %% (give or take %.1f), %.1f %% (%.1f) before", text->len > 0 ? "; " : "", what,
        (double)view_number(object, after, 0) / 10, (double)view_number(object, after_noise, 0) / 10,
        (double)view_number(object, before, 0) / 10, (double)view_number(object, before_noise, 0) / 10);
}

void view_gain_line(json_object *object)
{
    CLEANUP(view_text_done) ViewText text = {0};

    add_gain(&text, object, "waits", "waits");
    add_gain(&text, object, "memory local to its threads", "local");
    if (text.len > 0 || text.failed)
        view_line("Gained", "%s", text.failed ? "(out of memory)" : text.text);
}

void view_use_lines(json_object *object)
{
    int64_t rounds = view_number(object, "use_rounds", 0), samples = view_number(object, "use_samples", 0);
    char cost[64], stall[64], period[64];

    if (*view_string(object, "use_why"))
        view_line("Memory use", "%s", view_string(object, "use_why"));
    if (view_number(object, "use_processes", 0) == 0)
        return;
    view_line("", "%" PRId64 " %s, %" PRId64 " %s; cost %s, stalled a process for at most %s", rounds,
              human_noun(rounds, "round", "rounds"), samples, human_noun(samples, "sample", "samples"),
              human_span((uint64_t)view_number(object, "use_target_usec", 0), cost, sizeof(cost)),
              human_span((uint64_t)view_number(object, "use_stall_usec", 0), stall, sizeof(stall)));
    if (view_number(object, "use_period_usec", 0) > 0)
        view_line("", "a round every %s, or when its cost allows",
                  human_span((uint64_t)view_number(object, "use_period_usec", 0), period, sizeof(period)));
}

void view_say(const char *colour, const char *format, ...)
{
    bool line = format[strlen(format) - 1] == '\n';
    CLEANUP_FREE char *printable = NULL;
    va_list ap;

    va_start(ap, format);
    printable = text_vprintable(format, ap);
    va_end(ap);
    if (printable && line)
        printable[strlen(printable) - strlen("\\n")] = '\0';
    (void)printf("%s%s%s%s", colour ? colour : "", printable ? printable : "(out of memory)",
                 colour ? STYLE_RESET : "", line ? "\n" : "");
}

void view_text_done(ViewText *text)
{
    free(text->text);
    *text = (ViewText){0};
}

void view_text_add(ViewText *text, const char *format, ...)
{
    CLEANUP_FREE char *piece = NULL;
    va_list ap;
    size_t n;

    va_start(ap, format);
    piece = format_vtext(format, ap);
    va_end(ap);
    n = piece ? strlen(piece) : 0;
    if (!piece || !GROW(text->text, text->capacity, text->len + n + 1)) {
        text->failed = true;
        return;
    }
    memcpy(text->text + text->len, piece, n + 1);
    text->len += n;
}
