/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Many clients, of the system bus or of the private socket, that all listen and all send requests: more load than any
 * sane set of programs makes, to show that placement continues. Prints one line of JSON. Each process has fifty
 * clients: with a thousand in one process, its own event loop would be measured.
 *
 * The outcome does not depend on how slowly clients connect: no client sends before all are connected or rejected, and
 * no client leaves before all have sent and been answered. With 0 seconds this lasts until SIGTERM, and a line "ready"
 * says when it begins. With a number and an x it lasts until there are that many answers.
 *
 * usage: bus-storm CLIENTS CALLS_PER_SECOND SECONDS|ANSWERSx [ADDRESS-OF-THE-SOCKET] */

#include "base/parse.h"
#include "base/time.h"
#include "base/util.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

#define ROUND_USEC (10 * USEC_PER_MSEC)
/* How long connecting may take, and the remaining answers after the last request. Only a hang takes longer. */
#define REST_USEC           (300 * USEC_PER_SEC)
#define CLIENTS_PER_PROCESS 50U
/* The bus itself refuses more than 128 unanswered calls of one client. With a thousand clients this is
 * already work for seconds. */
#define PENDING_MAX 8U

typedef struct Client {
    struct Storm *storm;
    sd_bus *bus;
    uint32_t n_pending;
    bool ready, dead, served;
} Client;

/* In memory shared by all processes. */
typedef struct Gate {
    uint32_t n_processes;
    uint32_t enough; /* answers; 0: never */
    atomic_uint n_answers;
    atomic_uint n_in;   /* processes whose clients are connected or rejected */
    atomic_uint n_over; /* processes whose clients have sent requests and been answered */
    atomic_bool stop;
} Gate;

/* Of one process. */
typedef struct Storm {
    Gate *gate;
    sd_event *event;
    bool in, over; /* counted at the gate */
    Client *clients;
    const char *address; /* NULL: the system bus */
    pid_t pid;
    uint32_t n_clients, n_ready, n_dead, n_served, rate, seconds, next;
    uint64_t begin_usec, end_usec;
    uint64_t n_calls, n_replies, n_errors, n_signals, n_held, n_pending;
} Storm;

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    Client *client = userdata;

    client->n_pending--;
    client->storm->n_pending--;
    if (sd_bus_message_is_method_error(reply, NULL))
        client->storm->n_errors++;
    else
        client->storm->n_replies++;
    if (atomic_fetch_add(&client->storm->gate->n_answers, 1) + 1 == client->storm->gate->enough)
        atomic_store(&client->storm->gate->stop, true);
    client->storm->n_served += !client->served;
    client->served = true;
    return 1;
}

static int on_signal(sd_bus_message *signal, void *userdata, sd_bus_error *error)
{
    Client *client = userdata;

    client->storm->n_signals++;
    return 0;
}

static int ask(Client *client)
{
    Storm *storm = client->storm;
    int r;

    if (client->n_pending >= PENDING_MAX) {
        storm->n_held++;
        return 0;
    }
    r = sd_bus_call_method_async(client->bus, NULL, storm->address ? NULL : "org.numaplace1",
                                 "/org/numaplace1", "org.numaplace1.Manager", "GetStatus", on_reply, client,
                                 "");
    if (r < 0)
        return r;
    client->n_pending++;
    storm->n_pending++;
    storm->n_calls++;
    return 0;
}

/* The clients that were accepted, in turn. There is one, or the storm is over. */
static Client *next_client(Storm *storm)
{
    Client *client;

    do
        client = &storm->clients[storm->next++ % storm->n_clients];
    while (client->dead);
    return client;
}

/* The last process to enter opens the gate. */
static void come_in(Storm *storm)
{
    if (!storm->in && atomic_fetch_add(&storm->gate->n_in, 1) + 1 == storm->gate->n_processes &&
        storm->seconds == 0)
        (void)!write(STDOUT_FILENO, "ready\n", strlen("ready\n"));
    storm->in = true;
}

static void be_over(Storm *storm)
{
    if (!storm->over)
        (void)atomic_fetch_add(&storm->gate->n_over, 1);
    storm->over = true;
}

/* Sends the requests that are due by now. */
static int ask_some(Storm *storm, uint64_t now)
{
    uint64_t due;
    int r = 0;

    if (storm->begin_usec == 0) {
        storm->begin_usec = now;
        storm->end_usec = storm->seconds > 0 ? now + (uint64_t)storm->seconds * USEC_PER_SEC : UINT64_MAX;
    }
    if (atomic_load(&storm->gate->stop))
        storm->end_usec = MIN(storm->end_usec, now);
    due = (MIN(now, storm->end_usec) - storm->begin_usec) * storm->rate / USEC_PER_SEC;
    while (r >= 0 && storm->n_calls + storm->n_held < due)
        r = ask(next_client(storm));
    return r;
}

static int on_round(sd_event_source *source, uint64_t usec, void *userdata)
{
    Storm *storm = userdata;
    const Gate *gate = storm->gate;
    uint64_t now = time_now_usec();
    int r = 0;

    if (atomic_load(&gate->n_in) == gate->n_processes && !storm->over) {
        r = ask_some(storm, now);
        if (now >= storm->end_usec && (storm->n_pending == 0 || now - storm->end_usec >= REST_USEC))
            be_over(storm);
    }
    if (r < 0 || atomic_load(&gate->n_over) == gate->n_processes)
        return sd_event_exit(storm->event, r);
    r = sd_event_source_set_time(source, now + ROUND_USEC);
    return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

/* The process begins its rounds when all its clients are connected and listen, or have been rejected. */
static int client_ready(Client *client)
{
    Storm *storm = client->storm;
    int r;

    if (client->ready)
        return 0;
    client->ready = true;
    if (++storm->n_ready < storm->n_clients)
        return 0;
    come_in(storm);
    r = sd_event_add_time(storm->event, NULL, CLOCK_MONOTONIC, time_now_usec(), USEC_PER_MSEC, on_round,
                          storm);
    return r < 0 ? sd_event_exit(storm->event, r) : 0;
}

static int on_listening(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    Client *client = userdata;

    /* Failures for lack of a connection are counted below. */
    if (sd_bus_message_is_method_error(reply, NULL))
        return client->storm->address ? 1 : sd_event_exit(client->storm->event, -ECONNREFUSED);
    return client_ready(client);
}

static int client_lost(Client *client)
{
    Storm *storm = client->storm;

    client->dead = true;
    storm->n_pending -= client->n_pending;
    client->n_pending = 0;
    sd_bus_detach_event(client->bus);
    if (++storm->n_dead == storm->n_clients)
        return sd_event_exit(storm->event, -ECONNRESET);
    return client_ready(client);
}

static int on_disconnected(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    return client_lost(userdata);
}

/* On the system bus a client must subscribe to signals; on the socket it gets all of them. */
static int listen_to(Client *client)
{
    int r;

    if (!client->storm->address)
        return sd_bus_match_signal_async(client->bus, NULL, "org.numaplace1", NULL, NULL, NULL, on_signal,
                                         on_listening, client);
    r = sd_bus_match_signal(client->bus, NULL, NULL, "/org/freedesktop/DBus/Local",
                            "org.freedesktop.DBus.Local", "Disconnected", on_disconnected, client);
    if (r < 0)
        return r;
    r = sd_bus_match_signal(client->bus, NULL, NULL, NULL, "org.numaplace1.Manager", NULL, on_signal, client);
    if (r < 0)
        return r;
    return sd_bus_call_method_async(client->bus, NULL, NULL, "/org/numaplace1", "org.freedesktop.DBus.Peer",
                                    "Ping", on_listening, client, "");
}

static int connect_client(Storm *storm, Client *client)
{
    int r;

    client->storm = storm;
    if (storm->address) {
        r = sd_bus_new(&client->bus);
        if (r >= 0)
            r = sd_bus_set_address(client->bus, storm->address);
        if (r >= 0)
            r = sd_bus_start(client->bus);
    } else {
        r = sd_bus_open_system(&client->bus);
    }
    if (r >= 0)
        r = sd_bus_set_method_call_timeout(client->bus, REST_USEC);
    if (r >= 0)
        r = listen_to(client);
    /* A client that is rejected at once does not get this far. */
    if (storm->address && (r == -ECONNRESET || r == -EPIPE || r == -ENOTCONN))
        return client_lost(client);
    return r < 0 ? r : sd_bus_attach_event(client->bus, storm->event, 0);
}

/* A client that is neither accepted nor rejected is a failure, not a reason to wait for ever. */
static int on_late(sd_event_source *source, uint64_t usec, void *userdata)
{
    Storm *storm = userdata;

    return storm->in ? 0 : sd_event_exit(storm->event, -ETIMEDOUT);
}

static int run(Storm *storm)
{
    CLEANUP_FREE Client *clients = calloc(storm->n_clients, sizeof(*clients));
    int r = clients ? sd_event_new(&storm->event) : -ENOMEM;

    storm->clients = clients;
    if (r >= 0)
        r = sd_event_add_time_relative(storm->event, NULL, CLOCK_MONOTONIC, REST_USEC, 0, on_late, storm);
    for (uint32_t i = 0; r >= 0 && i < storm->n_clients; i++)
        r = connect_client(storm, &storm->clients[i]);
    if (r >= 0)
        r = sd_event_loop(storm->event);
    /* No process waits for one that failed, or that has no client left. */
    come_in(storm);
    be_over(storm);
    for (uint32_t i = 0; clients && i < storm->n_clients; i++)
        sd_bus_close_unref(clients[i].bus);
    sd_event_unref(storm->event);
    /* All clients being rejected is a result, too. */
    return r == -ECONNRESET && storm->n_dead == storm->n_clients ? 0 : r;
}

/* Starts a process with its share of `all`, which counts in `storm`. Returns 0 or -errno. */
static int start(Storm *storm, const Storm *all, uint32_t i, uint32_t n)
{
    pid_t pid;

    *storm = *all;
    storm->n_clients = all->n_clients * (i + 1) / n - all->n_clients * i / n;
    storm->rate = all->rate * (i + 1) / n - all->rate * i / n;
    pid = fork();
    if (pid == 0) {
        int r;

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGTERM, SIG_DFL);
        r = run(storm);

        if (r < 0)
            (void)fprintf(stderr, "bus-storm: %s\n", strerror(-r));
        _exit(r < 0 ? 1 : 0);
    }
    storm->pid = pid; /* in memory shared by both */
    return pid < 0 ? -errno : 0;
}

/* Waits for a process, and adds its counts to `all`. Returns 0 or -errno. */
static int finish(const Storm *storm, Storm *all)
{
    int status;

    if (waitpid(storm->pid, &status, 0) < 0)
        return -errno;
    all->n_calls += storm->n_calls;
    all->n_replies += storm->n_replies;
    all->n_errors += storm->n_errors;
    all->n_signals += storm->n_signals;
    all->n_held += storm->n_held;
    all->n_pending += storm->n_pending;
    all->n_dead += storm->n_dead;
    all->n_served += storm->n_served;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

/* Returns NULL when out of memory. */
static void *share(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static int run_all(Storm *all)
{
    uint32_t n = (all->n_clients + CLIENTS_PER_PROCESS - 1) / CLIENTS_PER_PROCESS, n_started = 0;
    Storm *storms = share(n * sizeof(*storms));
    int r = storms ? 0 : -ENOMEM;

    all->gate->n_processes = n;
    for (; r >= 0 && n_started < n; n_started += r >= 0)
        r = start(&storms[n_started], all, n_started, n);
    /* Processes that were not started will not enter. */
    for (uint32_t i = n_started; i < n && r < 0; i++) {
        (void)atomic_fetch_add(&all->gate->n_in, 1);
        (void)atomic_fetch_add(&all->gate->n_over, 1);
    }
    for (uint32_t i = 0; i < n_started; i++) {
        int r2 = finish(&storms[i], all);

        r = r < 0 ? r : r2;
    }
    return r;
}

/* For the handler of SIGTERM. */
static Gate *the_gate;

static void on_term(int number)
{
    atomic_store(&the_gate->stop, true);
}

/* SECONDS or ANSWERSx. */
static int parse_end(char *text, Storm *storm)
{
    size_t len = strlen(text);

    if (len == 0 || text[len - 1] != 'x')
        return parse_u32(text, &storm->seconds);
    text[len - 1] = '\0';
    storm->seconds = UINT32_MAX;
    return parse_u32(text, &storm->gate->enough);
}

int main(int argc, char **argv)
{
    const struct sigaction action = {.sa_handler = on_term, .sa_flags = SA_RESTART};
    Storm storm = {0};
    int r;

    storm.gate = the_gate = share(sizeof(*the_gate));
    if (!the_gate)
        return 1;
    if (argc < 4 || argc > 5 || parse_u32(argv[1], &storm.n_clients) < 0 ||
        parse_u32(argv[2], &storm.rate) < 0 || parse_end(argv[3], &storm) < 0 || storm.n_clients == 0)
        return 2;
    storm.address = argv[4]; /* NULL at the end of argv */
    (void)sigaction(SIGTERM, &action, NULL);
    r = run_all(&storm);
    (void)printf("{\"calls\": %" PRIu64 ", \"replies\": %" PRIu64 ", \"errors\": %" PRIu64
                 ", \"signals\": %" PRIu64 ", \"held\": %" PRIu64 ", \"pending\": %" PRIu64
                 ", \"turned_away\": %" PRIu32 ", \"served\": %" PRIu32 "}\n",
                 storm.n_calls, storm.n_replies, storm.n_errors, storm.n_signals, storm.n_held,
                 storm.n_pending, storm.n_dead, storm.n_served);
    return r < 0 ? 1 : 0;
}
