/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Two questions, one after the other, neither of which keeps the loop waiting:
 *
 *   method called --> who calls? (the bus) --root--> granted
 *                          |                            ^
 *                          +--> permitted? (polkit) -yes+
 *                                      +--no, or there is no polkit--> NotPermitted
 *
 * sd_bus_query_sender_creds() would ask the first one and wait; a bus that does not answer would then hold up the
 * ticks. */

#include "daemon/bus/authorize.h"

#include "base/time.h"
#include "base/util.h"
#include "numaplace/bus.h"

#include <string.h>
#include <utlist.h>

/* The bus answers at once or is broken. */
#define UID_TIMEOUT_USEC (10 * USEC_PER_SEC)
/* Somebody may be typing a password. */
#define POLKIT_TIMEOUT_USEC (120 * USEC_PER_SEC)

#define TOO_MANY "too many requests await authorization; try again later"

#define POLKIT_INTERACTIVE 1U /* AllowUserInteraction of CheckAuthorizationFlags */

struct BusRequest {
    BusRequests *requests;
    BusRequest *next;
    BusPeer *peer;
    sd_bus_message *message;
    sd_bus_message_handler_t handler;
    const char *action;
    char *workload;
    sd_bus_slot *slot; /* of the pending question */
    uint32_t uid;
    bool at_polkit; /* `uid` is known, and polkit is asked about it */
    bool granted;
};

static BusRequest *request_free(BusRequest *request)
{
    if (!request)
        return NULL;
    sd_bus_slot_unref(request->slot);
    sd_bus_message_unref(request->message);
    free(request->workload);
    free(request);
    return NULL;
}

DEFINE_CLEANUP(BusRequest *, request_free)

static void request_end(BusRequest *request)
{
    BusRequests *requests = request->requests;

    LL_DELETE(requests->first, request);
    requests->n--;
    (void)request_free(request);
}

void bus_requests_clear(BusRequests *requests)
{
    while (requests->first)
        request_end(requests->first);
}

static bool is_privileged(uid_t uid)
{
    return uid == 0 || uid == geteuid();
}

static int not_permitted(sd_bus_error *error, uid_t uid, const char *who)
{
    return sd_bus_error_setf(error, NUMAPLACE_ERROR_NOT_PERMITTED,
                             "user %u may only read: changes are for root and for %s", (unsigned)uid, who);
}

/* Answers the caller with an error. It does not matter if the caller has gone. */
static void refuse(BusRequest *request, const sd_bus_error *error)
{
    (void)sd_bus_reply_method_error(request->message, error);
    request_end(request);
}

static void refuse_user(BusRequest *request)
{
    CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;

    (void)not_permitted(&error, request->uid, "users that polkit authorizes");
    refuse(request, &error);
}

/* Calls the handler once more; this time bus_authorize() finds the request granted. */
static void grant(BusRequest *request)
{
    CLEANUP(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
    int r = sd_bus_message_rewind(request->message, 1);

    request->granted = true;
    if (r >= 0)
        r = request->handler(request->message, request->peer, &error);
    if (r < 0)
        (void)sd_bus_reply_method_errno(request->message, r, &error);
    request_end(request);
}

static int on_polkit(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    BusRequest *request = userdata;
    int authorized = 0, challenge = 0;
    bool answered = !sd_bus_message_is_method_error(reply, NULL) &&
                    sd_bus_message_enter_container(reply, 'r', "bba{ss}") >= 0 &&
                    sd_bus_message_read(reply, "bb", &authorized, &challenge) >= 0;

    if (answered && authorized)
        grant(request);
    else if (answered && challenge)
        refuse(request, &SD_BUS_ERROR_MAKE_CONST(SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED,
                                                 "this needs interactive authentication"));
    else
        refuse_user(request);
    return 1;
}

static int append_question(sd_bus_message *question, const BusRequest *request)
{
    int interactive = sd_bus_message_get_allow_interactive_authorization(request->message) > 0;
    int r = sd_bus_message_append(question, "(sa{sv})s", "system-bus-name", 1, "name", "s",
                                  sd_bus_message_get_sender(request->message), request->action);

    if (r < 0)
        return r;
    if (*request->workload)
        r = sd_bus_message_append(question, "a{ss}", 1, "workload", request->workload);
    else
        r = sd_bus_message_append(question, "a{ss}", 0);
    if (r < 0)
        return r;
    return sd_bus_message_append(question, "us", interactive ? POLKIT_INTERACTIVE : 0, "");
}

static int ask_polkit(BusRequest *request)
{
    CLEANUP(sd_bus_message_unrefp) sd_bus_message *question = NULL;
    sd_bus *bus = sd_bus_message_get_bus(request->message);
    int r = sd_bus_message_new_method_call(bus, &question, "org.freedesktop.PolicyKit1",
                                           "/org/freedesktop/PolicyKit1/Authority",
                                           "org.freedesktop.PolicyKit1.Authority", "CheckAuthorization");

    if (r < 0)
        return r;
    r = append_question(question, request);
    if (r < 0)
        return r;
    request->slot = sd_bus_slot_unref(request->slot);
    return sd_bus_call_async(bus, &request->slot, question, on_polkit, request, POLKIT_TIMEOUT_USEC);
}

/* A user who leaves questions open for as long as polkit waits keeps no other user from asking. */
static bool has_room_at_polkit(const BusRequests *requests, uint32_t uid)
{
    uint32_t n = 0, n_user = 0;

    for (const BusRequest *request = requests->first; request; request = request->next) {
        n += request->at_polkit;
        n_user += request->at_polkit && request->uid == uid;
    }
    return n_user < BUS_REQUESTS_MAX_PER_USER && n < BUS_REQUESTS_MAX;
}

static int on_uid(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    BusRequest *request = userdata;

    /* An error: the caller hung up. */
    if (sd_bus_message_is_method_error(reply, NULL) || sd_bus_message_read(reply, "u", &request->uid) < 0)
        request_end(request);
    else if (is_privileged(request->uid))
        grant(request);
    else if (!has_room_at_polkit(request->requests, request->uid))
        refuse(request, &SD_BUS_ERROR_MAKE_CONST(NUMAPLACE_ERROR_LIMIT, TOO_MANY));
    else if (ask_polkit(request) < 0)
        refuse_user(request);
    else
        request->at_polkit = true;
    return 1;
}

static int ask_uid(BusRequest *request)
{
    CLEANUP(sd_bus_message_unrefp) sd_bus_message *question = NULL;
    sd_bus *bus = sd_bus_message_get_bus(request->message);
    int r = sd_bus_message_new_method_call(bus, &question, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                           "org.freedesktop.DBus", "GetConnectionUnixUser");

    if (r < 0)
        return r;
    r = sd_bus_message_append(question, "s", sd_bus_message_get_sender(request->message));
    if (r < 0)
        return r;
    return sd_bus_call_async(bus, &request->slot, question, on_uid, request, UID_TIMEOUT_USEC);
}

/* Limits requests whose user is not known yet, for a moment, and all requests of one caller. */
static bool has_room(const BusRequests *requests, const char *sender)
{
    uint32_t n = 0, n_sender = 0;

    for (const BusRequest *request = requests->first; request; request = request->next) {
        n += !request->at_polkit;
        n_sender += strcmp(sd_bus_message_get_sender(request->message), sender) == 0;
    }
    return n_sender < BUS_REQUESTS_MAX_PER_CALLER && n < BUS_REQUESTS_MAX;
}

static int request_new(sd_bus_message *message, BusPeer *peer, const char *action, const char *workload,
                       sd_bus_message_handler_t handler)
{
    CLEANUP(request_free_p) BusRequest *request = calloc(1, sizeof(*request));
    int r;

    if (!request)
        return -ENOMEM;
    request->requests = peer->requests;
    request->peer = peer;
    request->message = sd_bus_message_ref(message);
    request->handler = handler;
    request->action = action;
    request->workload = strdup(workload);
    if (!request->workload)
        return -ENOMEM;
    r = ask_uid(request);
    if (r < 0)
        return r;
    request->next = peer->requests->first;
    peer->requests->first = TAKE_PTR(request);
    peer->requests->n++;
    return 0;
}

int bus_authorize(sd_bus_message *message, BusPeer *peer, const char *action, const char *workload,
                  sd_bus_message_handler_t handler, sd_bus_error *error)
{
    const char *sender = sd_bus_message_get_sender(message);

    if (!peer->requests)
        return is_privileged(peer->uid) ? 1 : not_permitted(error, peer->uid, "the user of the daemon");
    for (const BusRequest *request = peer->requests->first; request; request = request->next)
        if (request->message == message)
            return request->granted;
    if (!sender || !has_room(peer->requests, sender))
        return sd_bus_error_set_const(error, NUMAPLACE_ERROR_LIMIT, TOO_MANY);
    return request_new(message, peer, action, workload, handler);
}

bool bus_is_owner(const sd_bus_message *message, const BusPeer *peer, uid_t owner)
{
    uid_t uid = peer->uid;

    for (const BusRequest *request = peer->requests ? peer->requests->first : NULL; request;
         request = request->next)
        if (request->message == message)
            uid = request->uid;
    return uid == owner || is_privileged(uid);
}
