/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is left to do for processes that were released while the daemon works: threads that were being born
 * meanwhile, and children, which inherited a mask and are in nobody's World. A step with each tick. */

#include "act/internal.h"

typedef struct Search Search;

/* Goes on with the search that is under way, or begins one when it is due for a process that roams. 0 or -ENOMEM;
 * what cannot be put back stays in the journal, and is tried again when we stop. */
int search_step(Act *act, const World *world);
Search *search_free(Search *search);
