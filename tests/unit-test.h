/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* cmocka with the headers that it wants in front of it, and those that nearly every test uses. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
