/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What remains to do, while the daemon works, for released processes: threads that were being born, and
 * children, which inherited a mask and may be in no World. One step per tick. */

#include "act/internal.h"

typedef struct Search Search;

/* Continues the search, or begins one when due for a process that roams. 0 or -ENOMEM. What cannot be
 * restored stays in the journal, and is tried again at the stop. */
int search_step(Act *act, const World *world);
Search *search_free(Search *search);
