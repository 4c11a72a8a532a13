/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Bus messages to JSON values, the form in which every verb keeps its result. */

#include "base/util.h"

#include <json-c/json_object.h>
#include <systemd/sd-bus.h>

static inline void json_object_put_p(json_object **object)
{
    if (*object)
        (void)json_object_put(*object);
}

#define CLEANUP_JSON CLEANUP(json_object_put_p)

/* Converts the next complete value of the message and moves past it. Dictionaries become objects (numeric
 * keys in decimal), arrays and structures arrays, variants their content, object paths and signatures
 * strings. Only the keys in `keys` (NULL-terminated; NULL: all) are kept, at any depth. Returns 0; -ENXIO
 * when no value is left; -ENOTSUP for file descriptors; -EBADMSG or -ENOMEM. */
int bus_json_read(sd_bus_message *message, const char *const *keys, json_object **ret);
