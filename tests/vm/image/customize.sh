#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Run by mmdebstrap when the packages are in: customize.sh ROOT [RELEASE]. Makes the root file system a guest of the lab, and leaves
# the kernel, of that release if one is named, unpacked and never installed, in ROOT/lab-boot, from where it is taken out again.

set -eu
root=$1

# The job is the only thing that runs, and soon. Without udev no device unit ever appears, so nothing may wait for one: no
# fstab, no console logins. numad's package enables its service, which would take part in every measurement.
: > "$root/etc/fstab"
cp "$(dirname "$0")/lab.service" "$root/etc/systemd/system/lab.service"
mkdir -p "$root/etc/systemd/system/multi-user.target.wants" "$root/lab"
ln -sf ../lab.service "$root/etc/systemd/system/multi-user.target.wants/lab.service"
ln -sf /lib/systemd/system/multi-user.target "$root/etc/systemd/system/default.target"
for unit in numad.service getty@.service getty-static.service serial-getty@.service modprobe@.service \
    e2scrub_reap.service e2scrub_all.timer apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer fstrim.timer \
    dev-hugepages.mount dev-mqueue.mount sys-kernel-tracing.mount kmod-static-nodes.service \
    systemd-firstboot.service systemd-journal-flush.service systemd-modules-load.service systemd-networkd.service \
    systemd-pstore.service systemd-random-seed.service systemd-remount-fs.service systemd-sysusers.service \
    systemd-update-utmp.service systemd-update-utmp-runlevel.service systemd-user-sessions.service; do
    ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
echo lab > "$root/etc/hostname"
echo 0123456789abcdef0123456789abcdef > "$root/etc/machine-id"
mkdir -p "$root/etc/systemd/journald.conf.d"
printf '[Journal]\nStorage=volatile\n' > "$root/etc/systemd/journald.conf.d/lab.conf"

# What needs no documentation, no package lists and no cache.
rm -rf "$root/var/cache/apt/archives"/*.deb "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/locale"

mkdir "$root/lab-boot"
cd "$root/lab-boot"
export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"
# One package, or since 6.19 several: what would be installed. A release that is named comes before its security updates.
kernel=$(apt-get -s ${2:+-t "$2"} install linux-image-cloud-amd64 | sed -n 's/^Inst \(linux-\(image\|base\|binary\|modules\)-[0-9][^ ]*\).*/\1/p')
# shellcheck disable=SC2086
apt-get -qq ${2:+-t "$2"} download $kernel busybox-static
for package in *.deb; do
    dpkg-deb -x "$package" .
    rm "$package"
done
rm -rf "$root/var/lib/apt/lists"
