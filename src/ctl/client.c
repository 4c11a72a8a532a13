/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One connection, one question, one answer. The daemon serves its methods on a private socket without a bus
 * daemon, so there is no Hello and no name to look up. Errors end here as one line and an exit code. */

#include "ctl/client.h"

#include "base/time.h"
#include "ctl/patience.h"
#include "ctl/view.h"

#include "numaplace/bus.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* A daemon that does not answer for ten ticks at its slowest pace is stuck; the library's default, 25 s, is
 * long at a terminal. */
#define CALL_TIMEOUT_USEC (10 * USEC_PER_SEC)
/* A process may hold a lock on what the daemon wants to read, mostly briefly: ask again for two seconds. */
#define AGAIN_MAX  20U
#define AGAIN_USEC 100000U

/* "unix:path=..." with the path escaped as the D-Bus specification requires. */
static char *make_address(const char *path)
{
    static const char prefix[] = "unix:path=";
    size_t len = strlen(path);
    char *address = malloc(sizeof(prefix) + 3 * len);
    char *out;

    if (!address)
        return NULL;
    out = stpcpy(address, prefix);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)path[i];

        if (c < 0x80 && (isalnum(c) || strchr("-_/.*\\", c)))
            *out++ = (char)c;
        else
            out += sprintf(out, "%%%02x", c);
    }
    *out = '\0';
    return address;
}

/* The PID of the process that listens at the other end; 0: not known. */
static pid_t peer(sd_bus *bus)
{
    struct ucred cred = {0};
    socklen_t len = sizeof(cred);

    return getsockopt(sd_bus_get_fd(bus), SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ? 0 : cred.pid;
}

/* Waits a moment for a message from the daemon. Returns 0, -ETIMEDOUT to give up, or another -errno. */
static int wait_for_daemon(sd_bus *bus, Patience *patience)
{
    ProcStat stat;
    bool known = patience_read(peer(bus), &stat) == 0;
    uint64_t usec = patience_look(patience, time_now_usec(), known ? &stat : NULL);
    int r = usec > 0 ? sd_bus_wait(bus, usec) : -ETIMEDOUT;

    return MIN(r, 0);
}

/* Waits for a reply, or for the connection if `reply` is NULL; the library alone would allow 90 s for that. */
static int wait_for(sd_bus *bus, sd_bus_message *const *reply)
{
    Patience patience;

    patience_begin(&patience, time_now_usec());
    for (;;) {
        int r = reply ? *reply != NULL : sd_bus_is_ready(bus);

        if (r != 0)
            return MIN(r, 0);
        r = sd_bus_process(bus, NULL);
        if (r == 0)
            r = wait_for_daemon(bus, &patience);
        if (r < 0)
            return r;
    }
}

static int on_reply(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    *(sd_bus_message **)userdata = sd_bus_message_ref(reply);
    return 1;
}

int client_call_patiently(sd_bus *bus, sd_bus_message *message, sd_bus_error *ret_error, sd_bus_message **ret)
{
    CLEANUP_MESSAGE sd_bus_message *reply = NULL;
    sd_bus_slot *slot = NULL;
    int r = sd_bus_call_async(bus, &slot, message, on_reply, &reply, UINT64_MAX);

    if (r >= 0)
        r = wait_for(bus, &reply);
    (void)sd_bus_slot_unref(slot);
    if (r == -ETIMEDOUT)
        sd_bus_close(bus);
    if (r < 0)
        return r;
    /* When the connection is lost, the library makes up a reply. */
    if (sd_bus_is_open(bus) <= 0)
        return -ECONNRESET;
    if (sd_bus_message_is_method_error(reply, NULL)) {
        (void)sd_bus_error_copy(ret_error, sd_bus_message_get_error(reply));
        return -sd_bus_message_get_errno(reply);
    }
    if (ret)
        *ret = TAKE_PTR(reply);
    return 0;
}

static bool is_hang_up(int error)
{
    return error == -ECONNRESET || error == -ENOTCONN || error == -EPIPE;
}

/* The connection may also break while it is set up: the daemon exits, or has no room for another client. */
static CtlExit fail_connect(const char *path, int error)
{
    if (is_hang_up(error) || error == -ETIMEDOUT)
        return client_fail(error);
    if (error == -EAGAIN)
        return ctl_fail(CTL_EXIT_NO_ANSWER, "numaplaced at %s does not accept connections", path);
    if (error == -E2BIG)
        return ctl_fail(CTL_EXIT_FAILURE,
                        "cannot connect to numaplaced at %s: the path of a socket has at most %zu bytes",
                        path, sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
    if (error == -EPERM) /* from the handshake; a socket that may not be opened gives EACCES */
        return ctl_fail(CTL_EXIT_FAILURE, "what listens at %s is not numaplaced", path);
    if (error == -ENOENT || error == -ECONNREFUSED)
        return ctl_fail(CTL_EXIT_NOT_RUNNING,
                        "cannot connect to numaplaced at %s: %s. Is numaplaced running?", path,
                        strerror(-error));
    return ctl_fail(CTL_EXIT_FAILURE, "cannot connect to numaplaced at %s: %s.", path, strerror(-error));
}

CtlExit client_connect(const CtlOptions *options, sd_bus **ret)
{
    CLEANUP_FREE char *address = make_address(options->socket);
    CLEANUP_BUS sd_bus *bus = NULL;
    int r;

    if (!address)
        return ctl_fail_oom();
    r = sd_bus_new(&bus);
    if (r >= 0)
        r = sd_bus_set_address(bus, address);
    if (r >= 0)
        r = sd_bus_start(bus);
    if (r >= 0)
        r = wait_for(bus, NULL);
    if (r < 0) {
        sd_bus_close(bus); /* otherwise the library would wait again */
        return fail_connect(options->socket, r);
    }
    *ret = TAKE_PTR(bus);
    return CTL_EXIT_OK;
}

CtlExit client_fail(int error)
{
    if (is_hang_up(error))
        return ctl_fail(CTL_EXIT_NOT_RUNNING, "numaplaced closed the connection");
    if (error == -EAGAIN)
        return ctl_fail(CTL_EXIT_FAILURE,
                        "the process keeps its command line or environment locked: try again");
    if (error == -ETIMEDOUT)
        return ctl_fail(CTL_EXIT_NO_ANSWER,
                        "numaplaced is running but does not answer: it is hung or stopped");
    return ctl_fail(CTL_EXIT_FAILURE, "cannot communicate with numaplaced: %s", strerror(-error));
}

CtlExit client_fail_call(int r, const sd_bus_error *error)
{
    CtlExit code = CTL_EXIT_FAILURE;

    if (!sd_bus_error_is_set(error) || !strncmp(error->name, "System.Error.", strlen("System.Error.")) ||
        sd_bus_error_has_names(error, SD_BUS_ERROR_NO_REPLY, SD_BUS_ERROR_TIMEOUT, SD_BUS_ERROR_DISCONNECTED))
        return client_fail(r);
    if (sd_bus_error_has_names(error, NUMAPLACE_ERROR_NO_SUCH_WORKLOAD, NUMAPLACE_ERROR_NO_SUCH_PROCESS))
        code = CTL_EXIT_NOT_FOUND;
    return ctl_fail(code, "%s", error->message ? error->message : error->name);
}

static CtlExit call(sd_bus *bus, sd_bus_message *message, const char *const *keys, json_object **ret)
{
    CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
    CLEANUP_MESSAGE sd_bus_message *reply = NULL;
    int r;

    for (unsigned n = 0;; n++) {
        /* Methods that change something answer only when that is done. */
        r = ret ? sd_bus_call(bus, message, CALL_TIMEOUT_USEC, &error, &reply)
                : client_call_patiently(bus, message, &error, NULL);
        if (r != -EAGAIN || n == AGAIN_MAX)
            break;
        sd_bus_error_free(&error);
        (void)usleep(AGAIN_USEC);
    }
    if (r < 0)
        return client_fail_call(r, &error);
    if (!ret)
        return CTL_EXIT_OK;
    r = bus_json_read(reply, keys, ret);
    if (r < 0)
        return ctl_fail(CTL_EXIT_FAILURE, "numaplaced's answer cannot be read: %s", strerror(-r));
    return CTL_EXIT_OK;
}

CtlExit client_call(sd_bus *bus, const char *method, json_object **ret, const char *types, ...)
{
    CLEANUP_MESSAGE sd_bus_message *message = NULL;
    va_list ap;
    int r = sd_bus_message_new_method_call(bus, &message, NULL, NUMAPLACE_BUS_PATH,
                                           NUMAPLACE_BUS_INTERFACE_MANAGER, method);

    if (r >= 0 && *types) {
        va_start(ap, types);
        r = sd_bus_message_appendv(message, types, ap);
        va_end(ap);
    }
    if (r == -EINVAL)
        return ctl_fail(CTL_EXIT_NOT_FOUND, "a name that is not UTF-8 names nothing");
    if (r < 0)
        return client_fail(r);
    return call(bus, message, NULL, ret);
}

CtlExit client_call_keys(sd_bus *bus, const char *method, const char *const *keys, json_object **ret)
{
    CLEANUP_MESSAGE sd_bus_message *message = NULL;
    int r = sd_bus_message_new_method_call(bus, &message, NULL, NUMAPLACE_BUS_PATH,
                                           NUMAPLACE_BUS_INTERFACE_MANAGER, method);

    return r < 0 ? client_fail(r) : call(bus, message, keys, ret);
}

CtlExit client_query(const CtlOptions *options, const char *method, const char *argument, json_object **ret)
{
    CLEANUP_BUS sd_bus *bus = NULL;
    CtlExit code = client_connect(options, &bus);

    if (code != CTL_EXIT_OK)
        return code;
    return argument ? client_call(bus, method, ret, "s", argument) : client_call(bus, method, ret, "");
}

CtlExit client_list(sd_bus *bus, const char *method, int64_t after, json_object *list)
{
    for (;;) {
        CLEANUP_JSON json_object *page = NULL;
        int64_t last;
        CtlExit code = client_call(bus, method, &page, "tu", (uint64_t)after, NUMAPLACE_BUS_PAGE_MAX);

        if (code != CTL_EXIT_OK || view_length(page) == 0)
            return code;
        last = view_number(json_object_array_get_idx(page, view_length(page) - 1), "sequence", 0);
        if (last <= after)
            return ctl_fail(CTL_EXIT_FAILURE, "numaplaced's answer to %s repeats earlier entries", method);
        after = last;
        for (size_t i = 0; i < view_length(page); i++)
            if (json_append(list, json_object_get(json_object_array_get_idx(page, i))) < 0)
                return ctl_fail_oom();
    }
}
