/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* An option that a verb does not take is rejected, not ignored: `status --follow` asks for something that
 * would not happen. tests/integration/test-ctl-docs.py checks the manual and the completions against what
 * --help prints from these tables. */

#include "ctl/options.h"

#include "base/parse.h"
#include "sim/scenario/spec.h"

#include "numaplace/paths.h"

#include <getopt.h>
#include <string.h>

#define SECONDS_MAX 3600U

#define ACCEPTS_COMMON                                                                    \
    (CTL_ACCEPTS(HELP) | CTL_ACCEPTS(VERSION) | CTL_ACCEPTS(SOCKET) | CTL_ACCEPTS(JSON) | \
     CTL_ACCEPTS(NO_LEGEND) | CTL_ACCEPTS(NO_PAGER))

typedef struct OptionRow {
    const char *name;
    char letter;          /* 0: none */
    const char *argument; /* as --help shows it; NULL: takes none */
    const char *help;
    size_t field; /* in CtlOptions: its argument, or whether it was given; 0: set_option() handles it */
} OptionRow;

#define FIELD(name) offsetof(CtlOptions, name)
static_assert(FIELD(json) == 0, "the option of the first field is set by set_option()");

static const OptionRow option_rows[CTL_OPTION_MAX] = {
    [CTL_OPTION_HELP] = {"help", 'h', NULL, "show this text"},
    [CTL_OPTION_VERSION] = {"version", 0, NULL, "show the version"},
    [CTL_OPTION_SOCKET] = {"socket", 0, "PATH", "socket of the daemon, default " NUMAPLACE_BUS_SOCKET,
                           FIELD(socket)},
    [CTL_OPTION_JSON] = {"json", 0, "MODE", "print JSON: pretty, short or off"},
    [CTL_OPTION_NO_LEGEND] = {"no-legend", 0, NULL, "no titles above tables"},
    [CTL_OPTION_NO_PAGER] = {"no-pager", 0, NULL, "do not use a pager", FIELD(no_pager)},
    [CTL_OPTION_ALL] = {"all", 0, NULL, "pause, resume, release: everything", FIELD(all)},
    [CTL_OPTION_FOLLOW] = {"follow", 'f', NULL, "moves: print new ones until interrupted", FIELD(follow)},
    [CTL_OPTION_LINES] = {"lines", 'n', "N", "moves: only the last N"},
    [CTL_OPTION_XML] = {"xml", 0, "FILE", "a machine saved by hwloc instead of this one",
                        FIELD(topology.xml)},
    [CTL_OPTION_SYNTHETIC] = {"synthetic", 0, "TEXT", "a machine in hwloc's synthetic description",
                              FIELD(topology.synthetic)},
    [CTL_OPTION_REHEARSE] = {"rehearse", 0, "N", "split the CPUs into N emulated nodes"},
    [CTL_OPTION_WHOLE_MACHINE] = {"whole-machine", 0, NULL,
                                  "include CPUs and nodes outside this process's cpuset",
                                  FIELD(topology.whole_machine)},
    [CTL_OPTION_EFFECTIVE] = {"effective", 0, NULL, "policy cat: every key with its value in force",
                              FIELD(effective)},
    [CTL_OPTION_POLICY_DIR] = {"policy-dir", 0, "DIR", "directory of policies, repeatable, first wins"},
    [CTL_OPTION_ROOT] = {"root", 0, "DIR", "read policies and processes below DIR", FIELD(root)},
    [CTL_OPTION_SEEDS] = {"seeds", 0, "N", "simulate: N seeds instead of the scenario's"},
    [CTL_OPTION_PLOT] = {"plot", 0, "FILE", "simulate: draw the first seed into an SVG file", FIELD(plot)},
    [CTL_OPTION_RECORD] = {"record", 0, "FILE", "simulate: write the first seed's plans, for replay and top",
                           FIELD(record)},
    [CTL_OPTION_OUTPUT] = {"output", 0, "FILE", "metrics: replace this file, for node_exporter",
                           FIELD(output)},
    [CTL_OPTION_POLICY] = {"policy", 0, "NAME", "run: the policy to start the command under", FIELD(policy)},
    [CTL_OPTION_RUNTIME] = {"runtime", 0, NULL, "enable, disable: until the next boot", FIELD(runtime)},
    [CTL_OPTION_SECONDS] = {"seconds", 0, "N", "diagnose: seconds to observe, default 5"},
    [CTL_OPTION_PRINT_POLICY] = {"print-policy", 0, NULL, "diagnose: print a policy that would help",
                                 FIELD(print_policy)},
    [CTL_OPTION_ONCE] = {"once", 0, NULL, "top: print once, without a terminal", FIELD(once)},
    [CTL_OPTION_WATCH] = {"watch", 0, NULL, "status, workloads, show: again every two seconds", FIELD(watch)},
    [CTL_OPTION_SINCE] = {"since", 0, "SPAN", "report: the last SPAN, such as 2h; default the whole day"},
    [CTL_OPTION_HTML] = {"html", 0, "FILE", "report: write a self-contained page to FILE", FIELD(html)},
    [CTL_OPTION_NO_DAEMON] = {"no-daemon", 0, NULL, "run: apply what needs no daemon, without asking one",
                              FIELD(no_daemon)},
};

/* The second word of a verb of the policy family, or NULL. */
static const char *policy_word(const CtlVerbRow *row)
{
    return strncmp(row->name, "policy ", 7) == 0 ? row->name + 7 : NULL;
}

static void print_alone(void)
{
    bool policy = false;
    size_t n = 0;

    for (size_t i = 0; ctl_verbs[i]; i++)
        if (ctl_verbs[i]->alone && policy_word(ctl_verbs[i]))
            policy = true;
        else if (ctl_verbs[i]->alone)
            (void)printf("%s%s", n++ > 0 ? ", " : "", ctl_verbs[i]->name);
    (void)printf("%s need neither a running daemon\n"
                 "nor root, which diagnose needs only for processes of other users.\n",
                 policy ? " and the policy verbs" : "");
}

static CtlExit print_help(void)
{
    (void)printf("usage: numaplacectl [OPTION...] VERB [ARGUMENT...]\n\n"
                 "Shows where numaplaced places tasks, and why.\n\nVerbs:\n");
    for (size_t i = 0; ctl_verbs[i]; i++)
        (void)printf("  %-13s %-17s  %s\n", ctl_verbs[i]->name, ctl_verbs[i]->arguments, ctl_verbs[i]->help);
    (void)printf("\nOptions:\n");
    for (size_t i = 0; i < CTL_OPTION_MAX; i++) {
        const OptionRow *row = &option_rows[i];
        char name[48];

        (void)snprintf(name, sizeof(name), "--%s%s%s", row->name, row->argument ? "=" : "",
                       row->argument ? row->argument : "");
        (void)printf("  %c%c%c %-27s  %s\n", row->letter ? '-' : ' ', row->letter ? row->letter : ' ',
                     row->letter ? ',' : ' ', name, row->help);
    }
    (void)printf("\n");
    print_alone();
    (void)printf("Exit codes: 0 done, 1 failure, 2 wrong usage, 3 daemon not running, 4 no such subject,\n"
                 "5 daemon does not answer;\n"
                 "of run: the command's, or 125 failure, 126 cannot be run, 127 not found.\n"
                 "See numaplacectl(1).\n");
    return CTL_EXIT_OK;
}

static CtlExit print_version(void)
{
    (void)printf("numaplacectl %s\n", NUMAPLACE_VERSION);
    return CTL_EXIT_OK;
}

/* A value of CtlJson, or -EINVAL. */
static int json_by_name(const char *value)
{
    static const char *const names[] = {"off", "pretty", "short"};

    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (!strcmp(value, names[i]))
            return (int)i;
    return -EINVAL;
}

static CtlExit parse_json(const char *value, CtlJson *ret)
{
    int json = json_by_name(value);

    if (json < 0)
        return ctl_fail(CTL_EXIT_USAGE, "--json=%s: expected pretty, short or off", value);
    *ret = (CtlJson)json;
    return CTL_EXIT_OK;
}

static CtlExit parse_number(CtlOptionId id, const char *value, uint32_t min, uint32_t max, uint32_t *ret)
{
    uint32_t v;

    if (parse_u32(value, &v) < 0 || v < min || v > max)
        return ctl_fail(CTL_EXIT_USAGE, "--%s=%s: expected a number from %u to %u", option_rows[id].name,
                        value, min, max);
    *ret = v;
    return CTL_EXIT_OK;
}

static CtlExit parse_rehearse(const char *value, uint32_t *ret)
{
    if (parse_u32(value, ret) < 0 || *ret < 2)
        return ctl_fail(CTL_EXIT_USAGE, "--rehearse=%s: expected a number of nodes, 2 or more", value);
    return CTL_EXIT_OK;
}

static CtlExit parse_since(const char *value, uint64_t *ret)
{
    if (parse_span_usec(value, ret) < 0 || *ret == 0)
        return ctl_fail(CTL_EXIT_USAGE, "--since=%s: expected a time span such as 90min or 2h", value);
    return CTL_EXIT_OK;
}

static CtlExit add_policy_dir(CtlOptions *options, const char *value)
{
    if (options->n_policy_dirs == CTL_POLICY_DIRS_MAX)
        return ctl_fail(CTL_EXIT_USAGE, "--policy-dir= can be given at most %u times", CTL_POLICY_DIRS_MAX);
    options->policy_dirs[options->n_policy_dirs++] = value;
    return CTL_EXIT_OK;
}

static CtlExit set_option(CtlOptions *options, CtlOptionId id, const char *value)
{
    const OptionRow *row = &option_rows[id];
    void *field = (char *)options + row->field;

    switch (id) {
    case CTL_OPTION_JSON:
        return parse_json(value, &options->json);
    case CTL_OPTION_NO_LEGEND:
        options->legend = false;
        break;
    case CTL_OPTION_LINES:
        options->lines_given = true;
        return parse_number(id, value, 0, UINT32_MAX, &options->lines);
    case CTL_OPTION_REHEARSE:
        return parse_rehearse(value, &options->topology.rehearse);
    case CTL_OPTION_POLICY_DIR:
        return add_policy_dir(options, value);
    case CTL_OPTION_SEEDS:
        return parse_number(id, value, 1, SIM_SEEDS_MAX, &options->seeds);
    case CTL_OPTION_SINCE:
        return parse_since(value, &options->since_usec);
    case CTL_OPTION_SECONDS:
        return parse_number(id, value, 2, SECONDS_MAX, &options->seconds);
    case CTL_OPTION_HELP: /* these end the run */
    case CTL_OPTION_VERSION:
        break;
    default:
        assert(row->field > 0);
        if (row->argument)
            *(const char **)field = value;
        else
            *(bool *)field = true;
    }
    return CTL_EXIT_OK;
}

/* Fills the tables for getopt_long(), which returns 256 + CtlOptionId and stops at every word that is not an
 * option. */
static void make_getopt(struct option *long_options, char *letters)
{
    *letters++ = '+';
    *letters++ = ':';
    for (int i = 0; i < CTL_OPTION_MAX; i++) {
        long_options[i] = (struct option){
            .name = option_rows[i].name,
            .has_arg = option_rows[i].argument ? required_argument : no_argument,
            .val = 256 + i,
        };
        if (option_rows[i].letter) {
            *letters++ = option_rows[i].letter;
            if (option_rows[i].argument)
                *letters++ = ':';
        }
    }
    *letters = '\0';
}

static CtlOptionId option_by_letter(int letter)
{
    CtlOptionId id = 0;

    while (id < CTL_OPTION_MAX && option_rows[id].letter != letter)
        id++;
    return id;
}

/* The number of long options that begin like `word`, which is "--NAME" or "--NAME=VALUE". */
static unsigned count_beginning(const char *word)
{
    size_t len = strcspn(word + 2, "=");
    unsigned n = 0;

    for (size_t i = 0; i < CTL_OPTION_MAX; i++)
        n += strncmp(option_rows[i].name, word + 2, len) == 0;
    return n;
}

/* `c` is what getopt_long() returned; with opterr off it prints no message. optopt is a letter, 256 +
 * CtlOptionId, or 0 for an unknown or ambiguous long option. */
static CtlExit fail_option(int c, char **argv)
{
    const char *word = argv[optind - 1];
    const char *what = c == ':'                                   ? "needs an argument"
                       : optopt >= 256                            ? "takes no argument"
                       : optopt == 0 && count_beginning(word) > 1 ? "is ambiguous"
                                                                  : "is not an option";

    if (optopt > 0 && optopt < 256)
        return ctl_fail(CTL_EXIT_USAGE, "-%c %s. See numaplacectl --help.", optopt, what);
    return ctl_fail(CTL_EXIT_USAGE, "%s %s. See numaplacectl --help.", word, what);
}

static CtlExit take_option(int c, char **argv, CtlOptions *options, unsigned *given)
{
    const OptionRow *row;
    CtlOptionId id;

    if (c == '?' || c == ':')
        return fail_option(c, argv);
    id = c >= 256 ? (CtlOptionId)(c - 256) : option_by_letter(c);
    row = &option_rows[id];
    /* Mostly from an unset variable in a script. Parsers of numbers and the like report themselves what they
     * expect. */
    if (row->argument && !*optarg && (row->field > 0 || id == CTL_OPTION_POLICY_DIR))
        return ctl_fail(CTL_EXIT_USAGE, "--%s= is empty: expected %s. See numaplacectl --help.", row->name,
                        row->argument);
    *given |= 1U << id;
    return set_option(options, id, optarg);
}

static bool is_run(const char *word)
{
    return word && !strcmp(word, "run");
}

/* Finds out how to report a wrong option: --json= and `run` may stand after it. Takes words as parse_options() does,
 * but moves none. */
static void look_ahead(int argc, char **argv, const char *letters, const struct option *long_options)
{
    const char *verb = NULL;
    bool rest = false;

    while (!rest && optind < argc) {
        int before = optind, c = getopt_long(argc, argv, letters, long_options, NULL);
        int json = c == 256 + CTL_OPTION_JSON ? json_by_name(optarg) : -EINVAL;

        if (json >= 0)
            ctl_fail_in_json(json != CTL_JSON_OFF);
        if (c >= 0 || optind == argc)
            continue;
        rest = optind > before || is_run(verb);
        verb = verb ? verb : argv[optind];
        optind++;
    }
    optind = 1;
    /* Do not use exit codes that the command may return. */
    if (is_run(verb))
        ctl_fail_as_run();
}

/* Takes options and words in any order, but everything after the command of `run` belongs to that command.
 * Moves the words to the front, from argv[1] on; *ret_n is their number. */
static CtlExit parse_options(int argc, char **argv, CtlOptions *options, unsigned *ret_given, int *ret_n)
{
    struct option long_options[CTL_OPTION_MAX + 1] = {0};
    char letters[2 * CTL_OPTION_MAX + 3];
    bool rest = false;
    int n = 0;

    *ret_given = 0;
    make_getopt(long_options, letters);
    opterr = 0;
    look_ahead(argc, argv, letters, long_options);
    while (!rest) {
        int before = optind, c = getopt_long(argc, argv, letters, long_options, NULL);

        if (c >= 0) {
            CtlExit code = take_option(c, argv, options, ret_given);

            if (code != CTL_EXIT_OK)
                return code;
            continue;
        }
        if (optind == argc)
            break;
        /* It skipped "--" or has reached the command. */
        rest = optind > before || (n == 1 && is_run(argv[1]));
        argv[1 + n++] = argv[optind++];
    }
    while (rest && optind < argc)
        argv[1 + n++] = argv[optind++];
    argv[1 + n] = NULL;
    *ret_n = n;
    return CTL_EXIT_OK;
}

/* The number of words in argv that name the row's verb; 0 when they do not. */
static int verb_words(const CtlVerbRow *row, int argc, char **argv)
{
    const char *blank = strchrnul(row->name, ' ');
    size_t len = (size_t)(blank - row->name);
    int n = *blank ? 2 : 1;

    if (argc < n || strlen(argv[0]) != len || strncmp(argv[0], row->name, len) != 0)
        return 0;
    return n == 1 || !strcmp(argv[1], blank + 1) ? n : 0;
}

/* Reports that no verb of the policy family has `word` as its second; NULL: there is none. */
static CtlExit fail_policy(const char *word)
{
    char names[128] = ""; /* "list, cat, verify or match" */
    size_t left = 0;

    for (size_t i = 0; ctl_verbs[i]; i++)
        left += policy_word(ctl_verbs[i]) != NULL;
    for (size_t i = 0; ctl_verbs[i]; i++) {
        const char *name = policy_word(ctl_verbs[i]), *next = left > 2 ? ", " : " or ";
        size_t len = strlen(names);

        if (!name)
            continue;
        (void)snprintf(names + len, sizeof(names) - len, "%s%s", name, left > 1 ? next : "");
        left--;
    }
    return ctl_fail(CTL_EXIT_USAGE, "policy%s%s: expected %s. See numaplacectl --help.", word ? " " : "",
                    word ? word : "", names);
}

static CtlExit find_verb(CtlCommand *command, int argc, char **argv)
{
    if (argc == 0)
        return ctl_fail(CTL_EXIT_USAGE, "expected a verb. See numaplacectl --help.");
    for (size_t i = 0; ctl_verbs[i]; i++) {
        int words = verb_words(ctl_verbs[i], argc, argv);

        if (words > 0) {
            command->verb = ctl_verbs[i];
            command->argc = argc - words;
            command->argv = argv + words;
            return CTL_EXIT_OK;
        }
    }
    if (!strcmp(argv[0], "policy"))
        return fail_policy(argc > 1 ? argv[1] : NULL);
    return ctl_fail(CTL_EXIT_USAGE, "%s is not a verb. See numaplacectl --help.", argv[0]);
}

static CtlExit check_use(const CtlCommand *command, unsigned given)
{
    const CtlVerbRow *verb = command->verb;
    const CtlOptions *options = &command->options;
    unsigned wrong;

    assert(verb);
    wrong = given & ~(verb->accepts | ACCEPTS_COMMON);
    if (wrong)
        return ctl_fail(CTL_EXIT_USAGE, "--%s is not for %s. See numaplacectl --help.",
                        option_rows[__builtin_ctz(wrong)].name, verb->name);
    if (command->argc < verb->min || (verb->max >= 0 && command->argc > verb->max))
        return ctl_fail(CTL_EXIT_USAGE, "%s takes %s. See numaplacectl --help.", verb->name,
                        *verb->arguments ? verb->arguments : "no arguments");
    /* Mostly from an unset variable in a script. The bus takes an empty name for --all. */
    for (int i = 0; i < command->argc && !strstr(verb->arguments, "COMMAND"); i++)
        if (!*command->argv[i])
            return ctl_fail(CTL_EXIT_USAGE, "%s takes %s, not an empty argument%s. See numaplacectl --help.",
                            verb->name, verb->arguments,
                            verb->accepts & CTL_ACCEPTS(ALL) ? "; --all is everything" : "");
    if ((verb->accepts & CTL_ACCEPTS(ALL)) && options->all == (command->argc > 0))
        return ctl_fail(CTL_EXIT_USAGE, "%s takes either names or --all. See numaplacectl --help.",
                        verb->name);
    if (options->topology.xml && options->topology.synthetic)
        return ctl_fail(CTL_EXIT_USAGE, "--xml and --synthetic exclude each other");
    return CTL_EXIT_OK;
}

/* Finds out what standard output can do. No terminal is wider than 16 bits can express (struct winsize). */
static void look_at_terminal(CtlOptions *options)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM"), *columns = getenv("COLUMNS");
    uint32_t n;

    options->terminal = isatty(STDOUT_FILENO);
    options->clears = options->terminal && term && strcmp(term, "dumb") != 0;
    options->colour = options->clears && !(no_color && *no_color);
    if (columns && parse_u32(columns, &n) == 0 && n <= UINT16_MAX)
        options->columns = n;
}

CtlExit options_parse(int argc, char **argv, CtlCommand *ret)
{
    CtlCommand command = {
        .options =
            {
                .socket = NUMAPLACE_BUS_SOCKET,
                .legend = true,
                .root = "/",
            },
    };
    unsigned given = 0;
    int n = 0;
    CtlExit code;

    *ret = (CtlCommand){0};
    look_at_terminal(&command.options);
    code = parse_options(argc, argv, &command.options, &given, &n);
    if (code != CTL_EXIT_OK)
        return code;
    if (given & CTL_ACCEPTS(HELP))
        return print_help();
    if (given & CTL_ACCEPTS(VERSION))
        return print_version();

    code = find_verb(&command, n, argv + 1);
    if (code != CTL_EXIT_OK)
        return code;
    code = check_use(&command, given);
    if (code != CTL_EXIT_OK)
        return code;
    *ret = command;
    return CTL_EXIT_OK;
}
