/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Makes allocations of the tested code fail on demand, in programs that are linked with `allocations_args`.
 * Allocations by libraries such as hwloc are not affected. */

/* Lets `n` allocations succeed, the next one fail, and all others succeed again. Negative: none fails. */
void allocations_fail_after(int n);
