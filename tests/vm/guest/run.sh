#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Runs the jobs in the guest, one after the other, each until its limit by the guest's clock. What they print goes to the host over a
# virtio port. Lines that begin with "lab: " are ours: they tell the host that a job has begun, what it left behind, and how it ended.

export PATH=/lab/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
export PYTHONPATH=/lab/integration:/lab/cases PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
export CMOCKA_MESSAGE_OUTPUT=TAP NUMAPLACE_SOURCE=/lab NUMAPLACED=/lab/bin/numaplaced
export NUMAPLACECTL=/lab/bin/numaplacectl NUMAPLACE_SPINNER=/lab/bin/spinner NUMAPLACE_FORKER=/lab/bin/forker
export NUMAPLACE_KILL_AT_LIBRARY=/lab/lib/kill-at.so NUMAPLACE_BUS_STORM=/lab/bin/bus-storm NUMAPLACE_HANG=/lab/bin/hang
# Time in which all CPUs idle passes at once. What never comes true fails its test before the job's limit.
export NUMAPLACE_TEST_PAUSE_SEC=0.25 NUMAPLACE_TEST_LOOKS=800
cd /lab || exit 1
echo 0 > /proc/sys/kernel/panic_on_rcu_stall
balancing=/proc/sys/kernel/numa_balancing
by_default=$(cat $balancing)

if [ ! -d /lab/jobs ]; then
    setsid -c bash -l < /dev/ttyS0 > /dev/ttyS0 2>&1
    poweroff -ff
fi

for port in /sys/class/virtio-ports/*; do
    if [ "$(cat "$port/name")" = lab ]; then
        exec > "/dev/${port##*/}" 2>&1
    fi
done

# What a job may change, a line for each thing. What is there afterwards and was not before, it has left behind.
state()
{
    echo "CPUs online: $(cat /sys/devices/system/cpu/online)"
    grep -L online /sys/devices/system/memory/memory*/state 2> /dev/null | sed 's/^/memory offline: /'
    echo "numa_balancing: $(cat $balancing)"
    echo "swappiness: $(cat /proc/sys/vm/swappiness)"
    # What systemd runs beside the jobs is not theirs; what numaplaced is to leave alone is.
    for pid in 1 $$; do
        mask=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$pid/status")
        [ "$mask" = "$(cat /sys/devices/system/cpu/online)" ] || echo "mask: $mask"
    done
    find /sys/fs/cgroup -type d -name '*numaplace*' | sed 's/^/cgroup: /'
    # A journal in which nothing is left to put back has one line.
    find /run/numaplace -type f ! -name '*lock' ! -name journal 2> /dev/null
    sed -n 's/^/journal: /; 2,$p' /run/numaplace/journal 2> /dev/null
    ls -d /run/systemd/transient/*numaplace* /run/systemd/system.control/*numaplace* 2> /dev/null
    # shellcheck disable=SC2013
    for pid in $(cat "/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/cgroup.procs"); do
        if [ "$pid" != $$ ] && [ "$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status" 2> /dev/null)" != $$ ]; then
            name=$(cat "/proc/$pid/comm" 2> /dev/null) && echo "process: $name"
        fi
    done
    grep -v -e ' /tmp/' /proc/self/mounts
}

for job in /lab/jobs/*; do
    echo "lab: begin"
    [ "$(cat "$job/balancing")" = 1 ] || echo 0 > $balancing
    state > /run/lab-before
    timeout -k 10 "$(cat "$job/limit")" sh "$job/command"
    status=$?
    # On a line of its own, whatever the job printed last.
    echo
    state > /run/lab-after
    diff /run/lab-before /run/lab-after | sed -n 's/^> /lab: left /p'
    echo "$by_default" > $balancing
    echo "lab: end $status"
done
poweroff -ff
