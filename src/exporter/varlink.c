/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* One process serves one connection. systemd accepts (Accept=yes) and limits their number, so a slow or silent client
 * keeps no other waiting. Nothing is kept between calls: the number of connections and the daemon's speed limit how
 * often it is asked. Messages are JSON objects, each followed by a NUL; see https://varlink.org.
 *
 * libsystemd has Varlink since version 257, but Debian 12 has 252. So the part of it that two methods need is here. */

#include "exporter/varlink.h"

#include "ctl/verbs/metrics.h"
#include "ctl/view.h"

#include <ctype.h>
#include <json-c/json_tokener.h>
#include <json-c/linkhash.h>
#include <math.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define REQUEST_MAX 16384U
#define SILENT_SEC  10

#define INTERFACE_METRICS "io.systemd.Metrics"
#define INTERFACE_SERVICE "org.varlink.service"

/* Values are numbers. systemd declares their type as "any", which its own parser knows only since the version
 * that reads metrics. Older parsers and other implementations know "object", the type of values foreign to
 * the interface. */
static const char idl_metrics[] =
    "interface " INTERFACE_METRICS "\n\n"
    "type MetricFamilyType(counter, gauge, string)\n\n"
    "method List() -> (name: string, value: object, object: ?string, fields: ?object)\n\n"
    "method Describe() -> (name: string, description: string, type: MetricFamilyType)\n\n"
    "error NoSuchMetric()\n";

static const char idl_service[] =
    "interface " INTERFACE_SERVICE "\n\n"
    "method GetInfo() -> (vendor: string, product: string, version: string, url: string, "
    "interfaces: []string)\n\n"
    "method GetInterfaceDescription(interface: string) -> (description: string)\n\n"
    "error InterfaceNotFound(interface: string)\n\n"
    "error MethodNotFound(method: string)\n\n"
    "error MethodNotImplemented(method: string)\n\n"
    "error InvalidParameter(parameter: string)\n\n"
    "error PermissionDenied()\n\n"
    "error ExpectedMore()\n";

typedef struct Call {
    const CtlOptions *options;
    json_object *parameters;
    const char *method;
    FILE *out;
    bool failed; /* out of memory */
} Call;

/* Replying */

static void send_message(Call *call, json_object *message)
{
    const char *text = message ? json_object_to_json_string_ext(message, JSON_C_TO_STRING_PLAIN) : NULL;

    call->failed |= !text || fwrite(text, strlen(text) + 1, 1, call->out) != 1;
    (void)json_object_put(message);
}

/* Takes over the parameters; NULL: out of memory. */
static void reply(Call *call, json_object *parameters, bool continues)
{
    json_object *message = json_object_new_object();

    call->failed |= json_set(message, "parameters", parameters) < 0 ||
                    (continues && json_set_bool(message, "continues", true) < 0);
    send_message(call, message);
}

static void reply_error(Call *call, const char *error, const char *key, const char *value)
{
    json_object *message = json_object_new_object(), *parameters = json_add_object(message, "parameters");

    call->failed |= !parameters || json_set_text(message, "error", error) < 0 ||
                    (key && json_set_text(parameters, key, value) < 0);
    send_message(call, message);
}

/* Metrics */

/* Turns numaplace_idle_cpus into IdleCpus, after the prefix. */
static int set_name(json_object *object, const char *family)
{
    char name[128] = VARLINK_PREFIX;
    size_t n = strlen(name);
    const char *c = strchr(family, '_');

    for (bool upper = true; c && c[1] && n + 1 < sizeof(name); c++)
        if (c[1] == '_')
            upper = true;
        else {
            name[n++] = (char)(upper ? toupper((unsigned char)c[1]) : c[1]);
            upper = false;
        }
    name[n] = '\0';
    return json_set_text(object, "name", name);
}

static json_object *describe_family(json_object *family)
{
    CLEANUP_JSON json_object *object = json_object_new_object();

    if (set_name(object, view_string(family, "name")) < 0 ||
        json_set_text(object, "description", view_string(family, "help")) < 0 ||
        json_set_text(object, "type", view_string(family, "type")) < 0)
        return NULL;
    return TAKE_PTR(object);
}

static json_object *new_number(double value)
{
    return floor(value) == value && fabs(value) < 9e15 ? json_object_new_int64((int64_t)value)
                                                       : json_object_new_double(value);
}

/* The label "workload" names the object of a sample. Other labels are its fields. */
static int set_labels(json_object *object, json_object *labels)
{
    json_object *fields = NULL;
    json_object_iter iter;

    json_object_object_foreachC(labels, iter)
    {
        if (!strcmp(iter.key, "workload")) {
            if (json_set(object, "object", json_object_get(iter.val)) < 0)
                return -ENOMEM;
            continue;
        }
        if (!fields)
            fields = json_add_object(object, "fields");
        if (json_set(fields, iter.key, json_object_get(iter.val)) < 0)
            return -ENOMEM;
    }
    return 0;
}

static json_object *list_sample(json_object *family, json_object *sample)
{
    CLEANUP_JSON json_object *object = json_object_new_object();
    json_object *value = json_object_object_get(sample, "value");

    if (set_name(object, view_string(family, "name")) < 0 ||
        json_set(object, "value", new_number(json_object_get_double(value))) < 0 ||
        set_labels(object, json_object_object_get(sample, "labels")) < 0)
        return NULL;
    return TAKE_PTR(object);
}

static void list_families(Call *call, json_object *families)
{
    size_t n = view_length(families);

    for (size_t i = 0; i < n; i++)
        reply(call, describe_family(json_object_array_get_idx(families, i)), i + 1 < n);
}

static void list_samples(Call *call, json_object *families)
{
    json_object *last = NULL;

    /* Each reply says whether another one follows, so it is sent when the next sample is known. */
    for (size_t i = 0; i < view_length(families); i++) {
        json_object *family = json_object_array_get_idx(families, i), *samples = view_list(family, "samples");

        for (size_t k = 0; k < view_length(samples); k++) {
            if (last)
                reply(call, last, true);
            last = list_sample(family, json_object_array_get_idx(samples, k));
            call->failed |= !last;
        }
    }
    reply(call, last, false);
}

static void on_metrics(Call *call, void (*list)(Call *call, json_object *families))
{
    CLEANUP_JSON json_object *families = NULL;

    /* Without a daemon there are no metrics. */
    if (metrics_get(call->options, &families) != CTL_EXIT_OK)
        reply_error(call, INTERFACE_METRICS ".NoSuchMetric", NULL, NULL);
    else
        list(call, families);
}

/* The service */

static void on_info(Call *call)
{
    json_object *object = json_object_new_object(), *interfaces;

    call->failed |= json_set_text(object, "vendor", "numaplace") < 0 ||
                    json_set_text(object, "product", "numaplace-exporter") < 0 ||
                    json_set_text(object, "version", NUMAPLACE_VERSION) < 0 ||
                    json_set_text(object, "url", "man:numaplace-exporter(8)") < 0 ||
                    !(interfaces = json_add_array(object, "interfaces")) ||
                    json_append(interfaces, json_object_new_string(INTERFACE_METRICS)) < 0 ||
                    json_append(interfaces, json_object_new_string(INTERFACE_SERVICE)) < 0;
    reply(call, object, false);
}

static void on_description(Call *call)
{
    const char *asked = view_string(call->parameters, "interface");
    const char *text = !strcmp(asked, INTERFACE_METRICS)   ? idl_metrics
                       : !strcmp(asked, INTERFACE_SERVICE) ? idl_service
                                                           : NULL;
    json_object *object;

    if (!text) {
        reply_error(call, INTERFACE_SERVICE ".InterfaceNotFound", "interface", asked);
        return;
    }
    object = json_object_new_object();
    call->failed |= json_set_text(object, "description", text) < 0;
    reply(call, object, false);
}

static void dispatch(Call *call, bool more)
{
    bool list = !strcmp(call->method, INTERFACE_METRICS ".List");

    if (list || !strcmp(call->method, INTERFACE_METRICS ".Describe")) {
        if (more)
            on_metrics(call, list ? list_samples : list_families);
        else
            reply_error(call, INTERFACE_SERVICE ".ExpectedMore", NULL, NULL);
    } else if (!strcmp(call->method, INTERFACE_SERVICE ".GetInfo"))
        on_info(call);
    else if (!strcmp(call->method, INTERFACE_SERVICE ".GetInterfaceDescription"))
        on_description(call);
    else
        reply_error(call, INTERFACE_SERVICE ".MethodNotFound", "method", call->method);
}

/* The connection */

static bool send_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = TEMP_FAILURE_RETRY(send(fd, data, len, MSG_NOSIGNAL));

        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

/* Returns whether the connection continues: not after a message that is no call, a failed send, or lack of memory. */
static bool answer(int fd, const CtlOptions *options, const char *request)
{
    CLEANUP_JSON json_object *object = json_tokener_parse(request);
    CLEANUP_FREE char *text = NULL;
    Call call = {.options = options};
    size_t len = 0;

    if (!json_object_is_type(object, json_type_object))
        return false;
    call.method = view_string(object, "method");
    if (!*call.method)
        return false;
    call.parameters = json_object_object_get(object, "parameters");
    call.out = open_memstream(&text, &len);
    if (!call.out)
        return false;
    dispatch(&call, view_bool(object, "more"));
    if (fclose(call.out) != 0 || call.failed)
        return false;
    return view_bool(object, "oneway") || send_all(fd, text, len);
}

int varlink_serve(int fd, const CtlOptions *options)
{
    static const struct timeval silent = {.tv_sec = SILENT_SEC};
    char buffer[REQUEST_MAX];
    size_t len = 0;

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &silent, sizeof(silent));
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &silent, sizeof(silent));
    for (;;) {
        char *end = memchr(buffer, '\0', len);
        ssize_t n;

        if (end) {
            size_t used = (size_t)(end - buffer) + 1;

            if (!answer(fd, options, buffer))
                return EXIT_FAILURE;
            memmove(buffer, buffer + used, len - used);
            len -= used;
            continue;
        }
        if (len == sizeof(buffer))
            return EXIT_FAILURE;
        n = TEMP_FAILURE_RETRY(recv(fd, buffer + len, sizeof(buffer) - len, 0));
        if (n == 0 && len == 0)
            return EXIT_SUCCESS;
        if (n <= 0)
            return EXIT_FAILURE;
        len += (size_t)n;
    }
}
