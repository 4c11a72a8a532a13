/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* numaplace-exporter: serves the daemon's counters over HTTP for Prometheus and over Varlink for
 * systemd-report. It needs no privilege: it asks the daemon's socket, as any user may.
 *
 * Over HTTP, a scrape takes a few requests to the daemon, one after the other. Its answer is reused for a
 * second, however many clients ask; while the daemon does not answer, no client is served. Connections are
 * limited, in all and per address; each has little memory and ends after some seconds without a byte. So a
 * slow, malformed or endless client keeps no other out. */

#include "base/parse.h"
#include "base/time.h"
#include "ctl/verbs/metrics.h"
#include "exporter/varlink.h"

#include "numaplace/paths.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <locale.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#define CONNECTIONS_MAX    64U
#define CONNECTIONS_OF_ONE 16U /* per address */
#define CONNECTION_BYTES   16384U
#define CONNECTION_SEC     10U
#define CACHE_USEC         USEC_PER_SEC
/* A request to a daemon that hangs is given up after some seconds, in which no client is served. Then the
 * daemon is not asked for this long. */
#define HANGS_USEC       (15 * USEC_PER_SEC)
#define PORT_DEFAULT     9917
#define TYPE_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

typedef struct Exporter {
    CtlOptions options;
    char *text; /* last answer; NULL: none */
    size_t len;
    uint64_t until_usec; /* end of its validity */
} Exporter;

/* Makes sure that there is a recent answer. Returns whether there is one. */
static bool ask(Exporter *e)
{
    uint64_t now = time_now_usec();
    char *text = NULL;
    size_t len = 0;
    FILE *out;
    CtlExit code;

    if (now < e->until_usec)
        return e->text;
    free(e->text);
    e->text = NULL;
    out = open_memstream(&text, &len);
    if (!out)
        return false;
    code = metrics_write(&e->options, out);
    /* Counted from now, so that a client that waited for this answer does not ask again. */
    e->until_usec = time_now_usec() + (code == CTL_EXIT_NO_ANSWER ? HANGS_USEC : CACHE_USEC);
    if (fclose(out) != 0 || code != CTL_EXIT_OK) {
        free(text);
        return false;
    }
    e->text = text;
    e->len = len;
    return true;
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
                              const char *text, size_t len)
{
    /* With MHD_RESPMEM_MUST_COPY libmicrohttpd does not write to the buffer. */
    struct MHD_Response *response =
        MHD_create_response_from_buffer(len, (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result r;

    if (!response)
        return MHD_NO;
    (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    r = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return r;
}

static enum MHD_Result say(struct MHD_Connection *connection, unsigned status, const char *text)
{
    return answer(connection, status, "text/plain; charset=utf-8", text, strlen(text));
}

/* Called first with the head of a request, then with parts of its upload, which is ignored. */
static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_len, void **state)
{
    Exporter *e = userdata;

    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
        return *upload_len > 0 ? MHD_NO : say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "expected GET\n");
    if (!strcmp(url, "/"))
        return say(connection, MHD_HTTP_OK, "numaplace-exporter: see /metrics\n");
    if (strcmp(url, "/metrics") != 0)
        return say(connection, MHD_HTTP_NOT_FOUND, "there is only /metrics\n");
    if (!ask(e))
        return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "numaplaced does not answer\n");
    return answer(connection, MHD_HTTP_OK, TYPE_OPENMETRICS, e->text, e->len);
}

/* Parses "ADDRESS:PORT", "[ADDRESS]:PORT", or "PORT" for 127.0.0.1. */
static int parse_listen(const char *value, struct sockaddr_storage *ret)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)ret;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)ret;
    CLEANUP_FREE char *text = strdup(value);
    char *colon = text ? strrchr(text, ':') : NULL, *address = text;
    uint32_t port;
    size_t n;

    if (!text)
        return -ENOMEM;
    if (parse_u32(colon ? colon + 1 : text, &port) < 0 || port == 0 || port > UINT16_MAX)
        return -EINVAL;
    *ret = (struct sockaddr_storage){0};
    if (colon)
        *colon = '\0';
    n = strlen(address);
    if (colon && address[0] == '[' && n > 1 && address[n - 1] == ']') {
        address[n - 1] = '\0';
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, address + 1, &v6->sin6_addr) == 1 ? 0 : -EINVAL;
    }
    v4->sin_family = AF_INET;
    v4->sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, colon ? address : "127.0.0.1", &v4->sin_addr) == 1 ? 0 : -EINVAL;
}

static struct MHD_Daemon *start(Exporter *e, struct sockaddr_storage *at)
{
    int n = sd_listen_fds(true);
    const struct MHD_OptionItem where[] = {
        n > 0 ? (struct MHD_OptionItem){MHD_OPTION_LISTEN_SOCKET, SD_LISTEN_FDS_START, NULL}
              : (struct MHD_OptionItem){MHD_OPTION_SOCK_ADDR, 0, at},
        {MHD_OPTION_END, 0, NULL},
    };
    /* With ITC, a message stops libmicrohttpd. Without it, it would shut down the socket, which may be systemd's. */
    unsigned flags = MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_ITC;

    if (n == 0 && at->ss_family == AF_INET6)
        flags |= MHD_USE_IPv6;
    return MHD_start_daemon(flags, 0, NULL, NULL, on_request, e, MHD_OPTION_ARRAY, where,
                            MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_PER_IP_CONNECTION_LIMIT,
                            CONNECTIONS_OF_ONE, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES,
                            MHD_OPTION_CONNECTION_TIMEOUT, CONNECTION_SEC, MHD_OPTION_END);
}

static int run(Exporter *e, struct sockaddr_storage *at, const char *where)
{
    struct MHD_Daemon *daemon;
    sigset_t signals;
    int which;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigaddset(&signals, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    daemon = start(e, at);
    if (!daemon)
        return ctl_fail(CTL_EXIT_FAILURE, "cannot listen on %s: %s", where, strerror(errno));
    (void)sd_notify(false, "READY=1");
    (void)sigwait(&signals, &which);
    MHD_stop_daemon(daemon);
    free(e->text);
    return CTL_EXIT_OK;
}

/* A reader that has gone (EPIPE) is no failure. */
static int finish_output(void)
{
    if ((fflush(stdout) == 0 && !ferror(stdout)) || errno == EPIPE)
        return CTL_EXIT_OK;
    return ctl_fail(CTL_EXIT_FAILURE, "cannot write to standard output: %s", strerror(errno));
}

static int usage(void)
{
    (void)printf("usage: numaplace-exporter [OPTION...]\n\n"
                 "Serves the metrics of numaplaced at /metrics, for Prometheus; or, on an inherited\n"
                 "connection, over Varlink, for systemd-report.\n\n"
                 "  --listen=[ADDRESS:]PORT  address to listen on, default 127.0.0.1:%d;\n"
                 "                           a socket from systemd takes precedence\n"
                 "  --socket=PATH            socket of the daemon, default " NUMAPLACE_BUS_SOCKET "\n"
                 "  --help                   show this text\n"
                 "  --version                show the version\n\n"
                 "See numaplace-exporter(8).\n",
                 PORT_DEFAULT);
    return finish_output();
}

int main(int argc, char **argv)
{
    static const struct option rows[] = {{"listen", required_argument, NULL, 'l'},
                                         {"socket", required_argument, NULL, 's'},
                                         {"help", no_argument, NULL, 'h'},
                                         {"version", no_argument, NULL, 'v'},
                                         {0}};
    Exporter e = {.options = {.socket = NUMAPLACE_BUS_SOCKET, .root = "/"}};
    CLEANUP_FREE char *fallback = format_text("127.0.0.1:%d", PORT_DEFAULT);
    struct sockaddr_storage at;
    const char *listen = fallback;
    int c;

    (void)setlocale(LC_CTYPE, "");
    (void)signal(SIGPIPE, SIG_IGN);
    ctl_fail_of("numaplace-exporter");
    opterr = 0;
    while ((c = getopt_long(argc, argv, "", rows, NULL)) >= 0)
        switch (c) {
        case 'l':
            listen = optarg;
            break;
        case 's':
            e.options.socket = optarg;
            break;
        case 'h':
            return usage();
        case 'v':
            (void)printf("numaplace-exporter %s\n", NUMAPLACE_VERSION);
            return finish_output();
        default:
            return ctl_fail(CTL_EXIT_USAGE, "%s: not an option, or without its argument. See --help.",
                            argv[optind - 1]);
        }
    if (optind < argc)
        return ctl_fail(CTL_EXIT_USAGE, "%s: expected no arguments. See --help.", argv[optind]);
    if (!*e.options.socket)
        return ctl_fail(CTL_EXIT_USAGE, "--socket= is empty. See --help.");
    if (!listen)
        return ctl_fail_oom();
    if (parse_listen(listen, &at) < 0)
        return ctl_fail(CTL_EXIT_USAGE, "--listen=%s: expected an address and a port, as in 127.0.0.1:%d",
                        listen, PORT_DEFAULT);
    if (sd_listen_fds(false) > 1)
        return ctl_fail(CTL_EXIT_FAILURE,
                        "%d sockets from systemd: expected one ListenStream=; add \"ListenStream=\" "
                        "before it to drop earlier ones",
                        sd_listen_fds(false));
    if (sd_listen_fds(false) > 0 && sd_is_socket(SD_LISTEN_FDS_START, AF_UNIX, SOCK_STREAM, false) > 0)
        return varlink_serve(SD_LISTEN_FDS_START, &e.options);
    return run(&e, &at, listen);
}
