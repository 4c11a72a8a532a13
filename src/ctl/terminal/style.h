/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The colours in use, as terminal sequences (ECMA-48). Few, and each with one meaning. */

#define STYLE_RESET "\033[0m"
#define STYLE_BOLD  "\033[1m"  /* titles */
#define STYLE_DIM   "\033[2m"  /* not in force */
#define STYLE_GOOD  "\033[32m" /* done, in force */
#define STYLE_WARN  "\033[33m" /* paused, refused, a warning */
#define STYLE_BAD   "\033[31m" /* failed, an error */
