/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* window on|off|NUMBER: the marks of window.h, for use by scripts. */

#include "window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    char *end;
    unsigned long number;

    if (argc == 2 && strcmp(argv[1], "on") == 0) {
        window_on();
        return EXIT_SUCCESS;
    }
    if (argc == 2 && strcmp(argv[1], "off") == 0) {
        window_off();
        return EXIT_SUCCESS;
    }
    if (argc == 2 && argv[1][0] >= '0' && argv[1][0] <= '9') {
        number = strtoul(argv[1], &end, 10);
        if (*end == '\0' && number < WINDOW_MARKS) {
            window_mark((unsigned)number);
            return EXIT_SUCCESS;
        }
    }
    fprintf(stderr, "usage: window on|off|NUMBER (0 to %u)\n", WINDOW_MARKS - 1);
    return 2;
}
