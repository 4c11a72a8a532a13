# SPDX-License-Identifier: LGPL-2.1-or-later
"""The QEMU that runs all guests: Debian 13's, unpacked beside the images with the libraries it was built for,
whatever the host has.

Guests use a clock that counts instructions (-icount). With it, a CPU may run until the next timer is due, which is
seconds for a CPU that waits for another during the boot. Since QEMU 8.1 this time is divided among the CPUs. Debian
12 has 7.2.
"""

import fcntl
import hashlib
import pathlib
import tempfile

from . import IMAGES, Unavailable, image, note

SUITE = "trixie"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
DATA = ("usr/share/qemu", "usr/share/seabios")
PROGRAM = "usr/bin/qemu-system-x86_64"
PARTS = (PROGRAM, LIBRARIES, *DATA)


def bootstrap_argv(tar: pathlib.Path) -> list[str]:
    return image.sources(["mmdebstrap", "--mode=auto", "--variant=extract", "--architectures=amd64", "--include=qemu-system-x86",
                          "--aptopt=Acquire::Retries \"3\"", "--aptopt=APT::Install-Recommends \"false\""], SUITE, tar)


def ensure() -> list[str]:
    """The command that starts it. Unpacks it when it is not there, one process at a time."""
    root = IMAGES / f"emulator-{hashlib.sha256(' '.join(bootstrap_argv(pathlib.Path('tar'))).encode()).hexdigest()[:12]}"
    if not root.exists():
        image.need_programs("mmdebstrap", "tar", "unshare")
        IMAGES.mkdir(parents=True, exist_ok=True)
        with open(IMAGES / "emulator.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not root.exists():
                unpack(root)
    libraries = root / LIBRARIES
    return [str(libraries / "ld-linux-x86-64.so.2"), "--library-path", str(libraries), str(root / PROGRAM),
            *(word for data in DATA for word in ("-L", str(root / data)))]


def unpack(root: pathlib.Path) -> None:
    note("unpacking the emulator, once; this takes a minute and needs the network")
    with tempfile.TemporaryDirectory(prefix="emulator-", dir=IMAGES) as name:
        work, log = pathlib.Path(name), IMAGES / "emulator.log"
        log.unlink(missing_ok=True)
        image.bootstrap(bootstrap_argv(work / "root.tar"), work, log)
        (work / "root").mkdir()
        image.run_logged(["tar", "-C", str(work / "root"), "-xf", str(work / "root.tar"), "--no-same-owner",
                          *(f"./{part}" for part in PARTS)], log, Unavailable)
        (work / "root").rename(root)
