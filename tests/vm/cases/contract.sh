#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs the contract tests named, or those for any machine with two nodes. Each prints a plan of its own; the lab adds them up.

[ $# -gt 0 ] || set -- affinity cpuset hint-faults hotplug identity migrate-pages move-pages numa-balancing numa-maps psi \
    schedstat systemd
status=0
for name; do
    "contract-$name" || status=1
done

# What the kernel had to say against it, if anything.
dmesg --level=emerg,alert,crit,err,warn | grep -E 'WARNING|BUG|Oops|Call Trace' | sed 's/^/# kernel: /'
exit $status
