#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs the case in the guest. What it prints goes to the host over a virtio port; the first and the last line are ours, and
# tell the host that the job has begun and how it ended.

export PATH=/lab/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
export PYTHONPATH=/lab/integration:/lab/cases PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
export CMOCKA_MESSAGE_OUTPUT=TAP NUMAPLACE_SOURCE=/lab NUMAPLACED=/lab/bin/numaplaced
export NUMAPLACE_DEADLINE_SEC=240
export NUMAPLACECTL=/lab/bin/numaplacectl NUMAPLACE_SPINNER=/lab/bin/spinner NUMAPLACE_FORKER=/lab/bin/forker
cd /lab || exit 1
echo 0 > /proc/sys/kernel/panic_on_rcu_stall

if [ ! -s /lab/command ]; then
    setsid -c bash -l < /dev/ttyS0 > /dev/ttyS0 2>&1
    poweroff -ff
fi

for port in /sys/class/virtio-ports/*; do
    if [ "$(cat "$port/name")" = lab ]; then
        exec > "/dev/${port##*/}" 2>&1
    fi
done
echo "lab: begin"
sh /lab/command
status=$?
# On a line of its own, whatever the job printed last.
printf '\nlab: end %s\n' "$status"
poweroff -ff
