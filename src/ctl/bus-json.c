/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Both D-Bus and JSON carry typed trees, so one recursive conversion serves every method: a key that the
 * daemon adds appears in `--json` without a change here. No depth limit is needed, because D-Bus allows only
 * 64 levels. */

#include "ctl/ctl.h"

#include <string.h>

/* Longest signature in the D-Bus specification. */
#define SIGNATURE_MAX 255U

/* The union that the bus library fills with a basic value. */
typedef union Basic {
    uint8_t y;
    int b; /* the bus library's type for booleans */
    int16_t n;
    uint16_t q;
    int32_t i;
    uint32_t u;
    int64_t x;
    uint64_t t;
    double d;
    const char *s;
} Basic;

static json_object *basic_to_json(char type, const Basic *value)
{
    switch (type) {
    case SD_BUS_TYPE_BYTE:
        return json_object_new_int(value->y);
    case SD_BUS_TYPE_BOOLEAN:
        return json_object_new_boolean(value->b);
    case SD_BUS_TYPE_INT16:
        return json_object_new_int(value->n);
    case SD_BUS_TYPE_UINT16:
        return json_object_new_int(value->q);
    case SD_BUS_TYPE_INT32:
        return json_object_new_int(value->i);
    case SD_BUS_TYPE_UINT32:
        return json_object_new_int64(value->u);
    case SD_BUS_TYPE_INT64:
        return json_object_new_int64(value->x);
    case SD_BUS_TYPE_UINT64:
        return json_object_new_uint64(value->t);
    case SD_BUS_TYPE_DOUBLE:
        return json_object_new_double(value->d);
    default:
        return json_object_new_string(value->s);
    }
}

static int read_basic(sd_bus_message *message, char type, json_object **ret)
{
    Basic value = {0};
    int r;

    if (type == SD_BUS_TYPE_UNIX_FD)
        return -ENOTSUP;
    r = sd_bus_message_read_basic(message, type, &value);
    if (r < 0)
        return r;
    *ret = basic_to_json(type, &value);
    return *ret ? 0 : -ENOMEM;
}

static bool is_wanted(const char *const *keys, const char *key)
{
    if (!keys)
        return true;
    while (*keys && strcmp(*keys, key) != 0)
        keys++;
    return *keys;
}

/* Most keys are strings and are not copied: *ret then belongs to the message. Any other is owned by *other. */
static int read_key(sd_bus_message *message, char type, json_object **other, const char **ret)
{
    int r;

    if (type == SD_BUS_TYPE_STRING)
        return sd_bus_message_read_basic(message, type, ret);
    r = read_basic(message, type, other);
    if (r < 0)
        return r;
    *ret = json_object_get_string(*other);
    return *ret ? 0 : -ENOMEM;
}

/* `contents` is the signature of the entry: its key and its value. */
static int read_entry(sd_bus_message *message, const char *contents, const char *const *keys,
                      json_object *object)
{
    CLEANUP_JSON json_object *other = NULL;
    json_object *value = NULL;
    const char *key;
    int r = read_key(message, contents[0], &other, &key);

    if (r < 0)
        return r;
    if (!is_wanted(keys, key))
        return sd_bus_message_skip(message, contents + 1);
    r = bus_json_read(message, keys, &value);
    if (r < 0)
        return r == -ENXIO ? -EBADMSG : r;
    return json_set(object, key, value);
}

/* Reads {key, value} entries until the dictionary ends. */
static int read_entries(sd_bus_message *message, const char *contents, const char *const *keys,
                        json_object *object)
{
    for (;;) {
        int r = sd_bus_message_enter_container(message, SD_BUS_TYPE_DICT_ENTRY, contents);

        if (r <= 0)
            return r;
        r = read_entry(message, contents, keys, object);
        if (r < 0)
            return r;
        r = sd_bus_message_exit_container(message);
        if (r < 0)
            return r;
    }
}

static int read_elements(sd_bus_message *message, const char *const *keys, json_object *array)
{
    for (;;) {
        json_object *value = NULL;
        int r = bus_json_read(message, keys, &value);

        if (r < 0)
            return r == -ENXIO ? 0 : r;
        if (json_append(array, value) < 0)
            return -ENOMEM;
    }
}

/* Reads the container just entered. A variant whose signature has one character holds a basic value. An array
 * with the `contents` "{sv}" is a dictionary, and "sv" is the signature of its entries. */
static int read_inside(sd_bus_message *message, char type, char *contents, const char *const *keys,
                       json_object **ret)
{
    bool entries = contents[0] == SD_BUS_TYPE_DICT_ENTRY_BEGIN && type == SD_BUS_TYPE_ARRAY;
    CLEANUP_JSON json_object *object = NULL;
    int r;

    if (type == SD_BUS_TYPE_VARIANT)
        return contents[1] ? bus_json_read(message, keys, ret) : read_basic(message, contents[0], ret);
    object = entries ? json_object_new_object() : json_object_new_array();
    if (!object)
        return -ENOMEM;
    if (entries)
        contents[strlen(contents) - 1] = '\0';
    r = entries ? read_entries(message, contents + 1, keys, object) : read_elements(message, keys, object);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(object);
    return 0;
}

static int read_container(sd_bus_message *message, char type, const char *signature, const char *const *keys,
                          json_object **ret)
{
    /* A copy, because the library's signature is invalid once the container is entered. The protocol has none
     * longer. */
    char contents[SIGNATURE_MAX + 1];
    CLEANUP_JSON json_object *value = NULL;
    int r;

    if (strlen(signature) >= sizeof(contents))
        return -EBADMSG;
    strcpy(contents, signature);
    r = sd_bus_message_enter_container(message, type, contents);
    if (r < 0)
        return r;
    r = read_inside(message, type, contents, keys, &value);
    if (r < 0)
        return r == -ENXIO ? -EBADMSG : r;
    r = sd_bus_message_exit_container(message);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(value);
    return 0;
}

int bus_json_read(sd_bus_message *message, const char *const *keys, json_object **ret)
{
    const char *contents;
    char type;
    int r = sd_bus_message_peek_type(message, &type, &contents);

    if (r < 0)
        return r;
    if (r == 0)
        return -ENXIO;
    switch (type) {
    case SD_BUS_TYPE_ARRAY:
    case SD_BUS_TYPE_STRUCT:
    case SD_BUS_TYPE_VARIANT:
        return read_container(message, type, contents, keys, ret);
    default:
        return read_basic(message, type, ret);
    }
}
