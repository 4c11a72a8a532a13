/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Allocations of the tested code that fail when a test says so, in programs that are linked with `allocations_args`.
 * Those of libraries, hwloc's for one, are not touched. */

/* Lets `n` allocations succeed and the one behind them fail, and all others succeed again. Negative: none fails. */
void allocations_fail_after(int n);
