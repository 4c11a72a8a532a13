/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What remains to be done, while the daemon works, for processes that were released: threads that were being
 * born meanwhile, and children, which inherited a mask but may be in no World. One step in each tick. */

#include "act/internal.h"

typedef struct Search Search;

/* Continues the search in progress, or begins one if it is due for a process that roams. 0 or -ENOMEM. What
 * cannot be restored stays in the journal and is tried again at the stop. */
int search_step(Act *act, const World *world);
Search *search_free(Search *search);
