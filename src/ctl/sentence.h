/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Actions, refusals and threads as one readable line each: what, which task, why, and the numbers behind it. */

#include "ctl/view.h"

/* Formats a dictionary of numaplace-json(5) as a sentence. `now_usec` is CLOCK_MONOTONIC. */
typedef void (*SentenceMaker)(json_object *object, uint64_t now_usec, ViewText *ret);

/* move: "2026-05-14 12:30:05.250 lend     50-jvm: java[1234/1240] CPU 3 (node 1) 0-1 -> 0-1,3 for 1 s: done.
 * It waits ... (P2, 83.0 % against 25.0 %)" */
void sentence_move(json_object *move, uint64_t now_usec, ViewText *ret);

/* refusal: "node-limit, 14 times, 2 s ago: ... (P3, 8 against 2)" */
void sentence_refusal(json_object *refusal, uint64_t now_usec, ViewText *ret);

/* task: "1240 java: runs 83.0 %, waits 17.0 %, may use CPUs 0-1 (0-3 before), last on CPU 1 (node 0)" */
void sentence_task(json_object *task, uint64_t now_usec, ViewText *ret);

/* lease: "CPU 3 (node 1) to java[1234/1240] since 400 ms, for 600 ms at most" */
void sentence_lease(json_object *lease, uint64_t now_usec, ViewText *ret);

/* Prints a title and one indented line per entry. Prints nothing when the list is empty or NULL. */
CtlExit sentence_print(const char *title, json_object *list, SentenceMaker make);
