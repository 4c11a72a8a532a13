/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* polkit as a service sees it: org.freedesktop.PolicyKit1 on the system bus. It answers each CheckAuthorization
 * as its argument says, and prints what it was asked: "SUBJECT SENDER ACTION FLAGS KEY=VALUE...".
 *
 * usage: fake-polkit yes|no|challenge|silent */

#include "base/util.h"

#include <stdio.h>
#include <string.h>
#include <systemd/sd-bus.h>

static int print_details(sd_bus_message *message, const char *kind, const char *name, const char *action)
{
    char details[256] = "";
    const char *key, *value;
    uint32_t flags;
    int r = sd_bus_message_enter_container(message, 'a', "{ss}");

    while (r >= 0 && (r = sd_bus_message_read(message, "{ss}", &key, &value)) > 0) {
        size_t len = strlen(details);

        (void)snprintf(details + len, sizeof(details) - len, " %s=%s", key, value);
    }
    if (r >= 0)
        r = sd_bus_message_exit_container(message);
    if (r >= 0)
        r = sd_bus_message_read(message, "u", &flags);
    if (r < 0)
        return r;
    (void)printf("%s %s %s %u%s\n", kind, name, action, flags, details);
    return fflush(stdout) == 0 ? 0 : -EIO;
}

static int check_authorization(sd_bus_message *message, void *userdata, sd_bus_error *error)
{
    const char *answer = userdata, *kind, *key, *name, *action;
    int r = sd_bus_message_read(message, "(sa{sv})s", &kind, 1, &key, "s", &name, &action);

    if (r >= 0)
        r = print_details(message, kind, name, action);
    if (r < 0)
        return r;
    if (strcmp(answer, "silent") == 0)
        return 1;
    return sd_bus_reply_method_return(message, "(bba{ss})", strcmp(answer, "yes") == 0,
                                      strcmp(answer, "challenge") == 0, 0);
}

static const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("CheckAuthorization", "(sa{sv})sa{ss}us", "(bba{ss})", check_authorization,
                  SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

static int serve(sd_bus *bus, char *answer)
{
    int r = sd_bus_add_object_vtable(bus, NULL, "/org/freedesktop/PolicyKit1/Authority",
                                     "org.freedesktop.PolicyKit1.Authority", vtable, answer);

    if (r >= 0)
        r = sd_bus_request_name(bus, "org.freedesktop.PolicyKit1", 0);
    if (r >= 0 && (puts("ready") == EOF || fflush(stdout) == EOF))
        r = -EIO;
    while (r >= 0) {
        r = sd_bus_process(bus, NULL);
        if (r == 0)
            r = sd_bus_wait(bus, UINT64_MAX);
    }
    return r;
}

int main(int argc, char **argv)
{
    CLEANUP(sd_bus_unrefp) sd_bus *bus = NULL;
    int r;

    if (argc != 2)
        return 2;
    r = sd_bus_open_system(&bus);
    if (r >= 0)
        r = serve(bus, argv[1]);
    (void)fprintf(stderr, "fake-polkit: %s\n", strerror(-r));
    return 1;
}
