/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* From the contents of a bus message to a JSON value: the form in which every verb keeps what it prints. */

#include "base/util.h"

#include <json-c/json_object.h>
#include <systemd/sd-bus.h>

static inline void json_object_put_p(json_object **object)
{
    if (*object)
        (void)json_object_put(*object);
}

#define CLEANUP_JSON CLEANUP(json_object_put_p)

/* Converts the next complete value of the message and moves behind it. Dictionaries become objects (keys that are
 * numbers in decimal), arrays and structures become arrays, variants what they hold, object paths and signatures
 * strings. What has another key than `keys` (NULL ends them; NULL for all) is left out, at any depth. Returns 0; -ENXIO
 * when no value is left; -ENOTSUP for file descriptors; -EBADMSG or -ENOMEM. */
int bus_json_read(sd_bus_message *message, const char *const *keys, json_object **ret);
