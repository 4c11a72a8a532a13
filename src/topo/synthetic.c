/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* hwloc's synthetic descriptions have no distances, so ours may end in " distances=10,21,21,10", the matrix
 * row by row. The rest is given to hwloc unchanged, once synthetic-check.c has found that it would not use
 * too much memory or time. */

#include "topo/build.h"

#include "base/parse.h"

#include <ctype.h>
#include <string.h>

#define KEY "distances="

#define DISTANCES_MAX ((size_t)NODES_MAX * NODES_MAX)

static int parse_one(const char *text, size_t len, uint32_t *ret)
{
    char number[16];

    if (len == 0 || len >= sizeof(number) || !isdigit((unsigned char)*text))
        return -EINVAL;
    memcpy(number, text, len);
    number[len] = '\0';
    return parse_u32(number, ret);
}

static int parse_matrix(const char *text, Synthetic *synthetic, char **ret_error)
{
    size_t capacity = 0;

    for (;;) {
        size_t len = strcspn(text, ",");
        uint32_t value;

        if (parse_one(text, len, &value) < 0 || value < DISTANCE_LOCAL || value > DISTANCE_MAX)
            return format_error(ret_error, -EINVAL,
                                "distances= expects comma-separated numbers from 10 to 255, not \"%.*s\".",
                                (int)MIN(len, (size_t)32), text);
        if (synthetic->n_distances >= DISTANCES_MAX)
            return format_error(ret_error, -EINVAL, "distances= lists more than %zu numbers.", DISTANCES_MAX);
        if (APPEND(synthetic->distances, capacity, synthetic->n_distances, value) < 0)
            return -ENOMEM;
        if (text[len] == '\0')
            return 0;
        text += len + 1;
    }
}

int synthetic_parse(const char *text, Synthetic *ret, char **ret_error)
{
    const char *key = strstr(text, KEY);
    Synthetic synthetic = {NULL};
    size_t len, matrix_len;
    int r = 0;

    if (key && key != text && key[-1] != ' ')
        key = NULL;
    len = key ? (size_t)(key - text) : strlen(text);
    while (len > 0 && isspace((unsigned char)text[len - 1]))
        len--;
    synthetic.description = strndup(text, len);
    if (!synthetic.description)
        return -ENOMEM;

    if (key) {
        CLEANUP_FREE char *matrix = NULL;

        key += strlen(KEY);
        matrix_len = strlen(key);
        while (matrix_len > 0 && isspace((unsigned char)key[matrix_len - 1]))
            matrix_len--;
        matrix = strndup(key, matrix_len);
        r = matrix ? parse_matrix(matrix, &synthetic, ret_error) : -ENOMEM;
    }
    if (r == 0)
        r = synthetic_check(synthetic.description, ret_error);
    if (r < 0) {
        synthetic_done(&synthetic);
        return r;
    }
    *ret = synthetic;
    return 0;
}

void synthetic_done(Synthetic *synthetic)
{
    free(synthetic->description);
    free(synthetic->distances);
    *synthetic = (Synthetic){NULL};
}
