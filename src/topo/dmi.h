/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The bandwidth of the memory modules, as firmware reports it (SMBIOS). */

#include <stddef.h>
#include <stdint.h>

/* Returns the sum of the bandwidths of all modules in MB/s. It is too high where several modules share a
 * channel, which transfers no more than one of them. 0: it is unknown for some module, the table is
 * truncated, or it comes from a virtual machine, whose modules are fictitious. */
uint64_t dmi_memory_mb(const uint8_t *table, size_t size);
