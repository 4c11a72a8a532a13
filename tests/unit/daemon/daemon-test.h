/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What cmocka wants included, in the order it wants it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
