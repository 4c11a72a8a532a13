# SPDX-License-Identifier: LGPL-2.1-or-later
"""Boots the guest again (Boots= of the case), which starts the job anew. The service manager does it without the
kernel where possible."""

import os
import pathlib
import signal
import subprocess

usage = subprocess.run(["systemctl", "--help"], capture_output=True, text=True, check=True).stdout
VERB = "soft-reboot" if "soft-reboot" in usage else "reboot"
if VERB == "soft-reboot":
    # That would unmount the disk of the build, which only the initial RAM disk mounts.
    directory = pathlib.Path("/etc/systemd/system/lab.service.d")
    directory.mkdir()
    mounts = pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    disk = next(words[0] for words in map(str.split, mounts) if words[1] == "/lab")
    (directory / "mount.conf").write_text(f"[Service]\nExecStartPre=mount -o ro {disk} /lab\n", encoding="ascii")
print(f"# systemctl {VERB}", flush=True)
os.sync()
subprocess.run(["systemctl", "--no-block", VERB], check=True)
signal.pause()
