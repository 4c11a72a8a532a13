/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One call per unit may be in flight. A later set() replaces it, since only the last answer counts. The
 * manager works in the order of requests.
 *
 * The property is set for this boot only. The manager keeps it in a drop-in below /run, so it survives a
 * restart of the unit and a daemon-reload. */

#include "act/fence/unit.h"

#include "base/time.h"
#include "base/util.h"

#include <string.h>

#define PRIVATE_ADDRESS "unix:path=/run/systemd/private"
#define MANAGER         "org.freedesktop.systemd1"
#define MANAGER_PATH    "/org/freedesktop/systemd1"
#define NO_SUCH_UNIT    "org.freedesktop.systemd1.NoSuchUnit"

/* The manager answers within milliseconds, or within seconds during a daemon-reload. */
#define CALL_USEC (10U * USEC_PER_SEC)

typedef struct UnitCall {
    char *unit;
    sd_bus_slot *slot; /* NULL: answered */
    int result;
} UnitCall;

struct FenceUnits {
    const char *property;
    sd_bus *bus, *given;
    UnitCall **calls; /* pointers: answers know them */
    size_t n_calls, capacity;
};

FenceUnits *fence_units_new(const char *property, sd_bus *bus)
{
    FenceUnits *units = calloc(1, sizeof(*units));

    if (!units)
        return NULL;
    units->property = property;
    units->given = sd_bus_ref(bus);
    return units;
}

static void call_free(UnitCall *call)
{
    sd_bus_slot_unref(call->slot);
    free(call->unit);
    free(call);
}

/* The connection is of no more use; the next call makes another. */
static void disconnect(FenceUnits *units, int error)
{
    for (size_t i = 0; i < units->n_calls; i++)
        if (units->calls[i]->slot) {
            units->calls[i]->slot = sd_bus_slot_unref(units->calls[i]->slot);
            units->calls[i]->result = error;
        }
    units->bus = sd_bus_close_unref(units->bus);
}

FenceUnits *fence_units_free(FenceUnits *units)
{
    if (!units)
        return NULL;
    disconnect(units, -ENOTCONN);
    sd_bus_unref(units->given);
    for (size_t i = 0; i < units->n_calls; i++)
        call_free(units->calls[i]);
    free(units->calls);
    free(units);
    return NULL;
}

static int connect_private(sd_bus **ret)
{
    sd_bus *bus = NULL;
    int r = sd_bus_new(&bus);

    if (r >= 0)
        r = sd_bus_set_address(bus, PRIVATE_ADDRESS);
    if (r >= 0)
        r = sd_bus_start(bus);
    *ret = r < 0 ? sd_bus_unref(bus) : bus;
    return MIN(r, 0);
}

static int connect(FenceUnits *units)
{
    int r = -EPERM;

    if (units->bus)
        return 0;
    if (units->given) {
        units->bus = sd_bus_ref(units->given);
        return 0;
    }
    /* The manager's own socket is for root. */
    if (geteuid() == 0)
        r = connect_private(&units->bus);
    return r < 0 ? sd_bus_open_system(&units->bus) : r;
}

static int on_answer(sd_bus_message *message, void *userdata, sd_bus_error *ret_error)
{
    UnitCall *call = userdata;
    const sd_bus_error *error = sd_bus_message_get_error(message);

    call->slot = sd_bus_slot_unref(call->slot);
    call->result = !error                                       ? 0
                   : sd_bus_error_has_name(error, NO_SUCH_UNIT) ? -ENOENT
                                                                : -sd_bus_error_get_errno(error);
    return 0;
}

static UnitCall *find(const FenceUnits *units, const char *unit)
{
    for (size_t i = 0; i < units->n_calls; i++)
        if (strcmp(units->calls[i]->unit, unit) == 0)
            return units->calls[i];
    return NULL;
}

static int add(FenceUnits *units, const char *unit, UnitCall **ret)
{
    UnitCall *call = find(units, unit);

    if (!call) {
        /* NOLINTNEXTLINE(bugprone-sizeof-expression): elements are pointers */
        if (!GROW(units->calls, units->capacity, units->n_calls + 1))
            return -ENOMEM;
        call = calloc(1, sizeof(*call));
        if (!call)
            return -ENOMEM;
        call->unit = strdup(unit);
        if (!call->unit) {
            free(call);
            return -ENOMEM;
        }
        units->calls[units->n_calls++] = call;
    }
    call->slot = sd_bus_slot_unref(call->slot);
    *ret = call;
    return 0;
}

/* CPUs or nodes in the manager's format: one bit each, in bytes. */
static int append_set(sd_bus_message *message, hwloc_const_bitmap_t set)
{
    int last = hwloc_bitmap_last(set);
    size_t n = last < 0 ? 0 : (size_t)last / 8 + 1;
    CLEANUP_FREE uint8_t *bytes = calloc(n + 1, 1);

    if (!bytes)
        return -ENOMEM;
    for (int i = hwloc_bitmap_first(set); i >= 0; i = hwloc_bitmap_next(set, i))
        bytes[i / 8] |= (uint8_t)(1U << (i % 8));
    return sd_bus_message_append_array(message, 'y', bytes, n);
}

static int append_property(sd_bus_message *message, const char *name, hwloc_const_bitmap_t set)
{
    int r = sd_bus_message_open_container(message, 'r', "sv");

    if (r >= 0)
        r = sd_bus_message_append(message, "s", name);
    if (r >= 0)
        r = sd_bus_message_open_container(message, 'v', "ay");
    if (r >= 0)
        r = append_set(message, set);
    if (r >= 0)
        r = sd_bus_message_close_container(message);
    return r < 0 ? r : sd_bus_message_close_container(message);
}

static int send_set(FenceUnits *units, UnitCall *call, hwloc_const_bitmap_t set)
{
    CLEANUP(sd_bus_message_unrefp) sd_bus_message *message = NULL;
    int r = sd_bus_message_new_method_call(units->bus, &message, MANAGER, MANAGER_PATH, MANAGER ".Manager",
                                           "SetUnitProperties");

    if (r >= 0)
        r = sd_bus_message_append(message, "sb", call->unit, true);
    if (r >= 0)
        r = sd_bus_message_open_container(message, 'a', "(sv)");
    if (r >= 0)
        r = append_property(message, units->property, set);
    if (r >= 0)
        r = sd_bus_message_close_container(message);
    if (r >= 0)
        r = sd_bus_call_async(units->bus, &call->slot, message, on_answer, call, CALL_USEC);
    return MIN(r, 0);
}

/* Processes incoming messages. */
static void process(FenceUnits *units)
{
    int r = 0;

    while (units->bus && (r = sd_bus_process(units->bus, NULL)) > 0)
        ;
    if (r < 0)
        disconnect(units, r);
}

static int units_set(void *context, const char *name, hwloc_const_bitmap_t set)
{
    FenceUnits *units = context;
    UnitCall *call;
    int r;

    /* A manager that has re-executed itself has closed the connection. */
    process(units);
    r = connect(units);
    if (r == 0)
        r = add(units, name, &call);
    if (r == 0)
        r = send_set(units, call, set);
    if (r == 0)
        process(units);
    return r;
}

static int units_result(void *context, const char *name)
{
    FenceUnits *units = context;
    const UnitCall *call;

    process(units);
    call = find(units, name);
    return !call ? 0 : call->slot ? -EINPROGRESS : call->result;
}

static void units_forget(void *context, const char *name)
{
    FenceUnits *units = context;

    for (size_t i = 0; i < units->n_calls; i++)
        if (strcmp(units->calls[i]->unit, name) == 0) {
            call_free(units->calls[i]);
            units->calls[i] = units->calls[--units->n_calls];
            return;
        }
}

static bool in_progress(const FenceUnits *units)
{
    for (size_t i = 0; i < units->n_calls; i++)
        if (units->calls[i]->slot)
            return true;
    return false;
}

static void units_wait(void *context, uint64_t usec)
{
    FenceUnits *units = context;
    uint64_t end = time_now_usec() + usec;

    process(units);
    while (units->bus && in_progress(units)) {
        uint64_t now = time_now_usec();

        if (now >= end || sd_bus_wait(units->bus, end - now) < 0)
            break;
        process(units);
    }
}

const FenceOps fence_ops_unit = {
    .set = units_set,
    .result = units_result,
    .wait = units_wait,
    .forget = units_forget,
};
