# SPDX-License-Identifier: LGPL-2.1-or-later
"""The second disk: the build under test, read-only at /lab in the guest.

The programs bring their shared libraries and dynamic linker, so that a build of any host runs on the userland of any
suite: builds with -Dvm=true look for libraries in /lab/lib, and the copies here use the linker from there, too.
"""

import json
import os
import pathlib
import shutil
import subprocess

from . import SOURCE, VM, LabError
from .image import DISK_MB

INTERPRETER = b"/lib64/ld-linux-x86-64.so.2"
OUR_INTERPRETER = b"/lab/lib/ld.so"
# Directories of a build directory whose programs are packed, and single programs.
PROGRAMS = ("src/daemon/*", "src/ctl/*", "tests/workloads/*", "tests/vm/contract/*", "tests/integration/bus-storm",
            "tests/integration/hang", "tests/unit/act/test-act-mover-live")
# Makes the same build give the same disk; the guest's clock could otherwise tell it from another one.
DISK_ID = "6e756d61-706c-4163-a5a5-6c6162646973"
DISK_TIME = 1767225600
PRELOADED = pathlib.Path("tests/campaign/kill-at.so")


def programs(build: pathlib.Path) -> list[pathlib.Path]:
    found = []
    for pattern in PROGRAMS:
        for path in sorted(build.glob(pattern)):
            if path.is_file() and os.access(path, os.X_OK) and path.read_bytes()[:4] == b"\x7fELF" and ".so" not in path.name:
                found.append(path)
    if not any(path.name == "numaplaced" for path in found):
        raise LabError(f"{build}: no numaplaced there; build it first, with -Dvm=true")
    return found


def libraries(program: pathlib.Path) -> dict[str, str]:
    """Name of each shared library of a program, and where it is on this machine."""
    found = {}
    text = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False).stdout
    for line in text.splitlines():
        words = line.split()
        if "=>" in words and words[words.index("=>") + 1].startswith("/"):
            found[words[0]] = words[words.index("=>") + 1]
        elif words and words[0].startswith("/"):
            found["ld.so"] = words[0]
    return found


def copy_program(source: pathlib.Path, target: pathlib.Path) -> None:
    """A copy that uses the dynamic linker beside its libraries. The path is shorter, so it fits in place of the old
    one."""
    data = source.read_bytes()
    if b"/lab/lib\0" not in data:
        raise LabError(f"{source} was not built for the lab: configure with -Dvm=true")
    target.write_bytes(data.replace(INTERPRETER + b"\0", OUR_INTERPRETER.ljust(len(INTERPRETER) + 1, b"\0"), 1))
    target.chmod(0o755)


def stage_jobs(cases, root: pathlib.Path) -> None:
    """A directory for each job, in the order in which they run; guest/run.sh reads it. Without jobs it runs a shell."""
    for number, case in enumerate(case for case in cases if case.command):
        job = root / "jobs" / f"{number:02}-{case.name}"
        job.mkdir(parents=True)
        (job / "command").write_text(case.command, encoding="utf-8")
        (job / "limit").write_text(f"{case.limit_sec}\n", encoding="ascii")
        (job / "balancing").write_text(f"{case.balancing:d}\n", encoding="ascii")


def stage(build: pathlib.Path, info: dict, cases, packages: list[pathlib.Path], root: pathlib.Path) -> None:
    """Creates the content of /lab in a directory."""
    for name in ("bin", "lib", "packages"):
        (root / name).mkdir(parents=True)
    wanted: dict[str, str] = {}
    for program in programs(build):
        copy_program(program, root / "bin" / program.name)
        wanted.update(libraries(program))
    for name, path in wanted.items():
        shutil.copy(path, root / "lib" / name)
    shutil.copy(build / PRELOADED, root / "lib" / PRELOADED.name)
    for path in packages:
        shutil.copy(path, root / "packages" / path.name)
    shutil.copytree(SOURCE / "policies", root / "policies")
    shutil.copytree(SOURCE / "man", root / "man")
    ignore = shutil.ignore_patterns("__pycache__", "meson.build", "*.case")
    shutil.copytree(SOURCE / "tests" / "integration", root / "integration", ignore=ignore)
    shutil.copytree(SOURCE / "tests" / "campaign", root / "campaign", ignore=ignore)
    for name in ("cases", "guest", "selftest"):
        shutil.copytree(VM / name, root / name, ignore=ignore)
    (root / "info.json").write_text(json.dumps(info, indent=2) + "\n", encoding="utf-8")
    stage_jobs(cases, root)


def make_disk(build: pathlib.Path, info: dict, cases, packages: list[pathlib.Path], work: pathlib.Path) -> pathlib.Path:
    """Packs /lab into a file system image below `work`."""
    root, disk = work / "lab", work / "lab.ext4"
    stage(build, info, cases, packages, root)
    size_mb = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // (1 << 20) * 11 // 10 + 8
    size_mb = -(-size_mb // DISK_MB) * DISK_MB
    # Everything belongs to root in the guest, whoever packs it.
    prefix = [] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--"]
    argv = [*prefix, "mke2fs", "-q", "-t", "ext4", "-L", "lab", "-U", DISK_ID, "-E", f"hash_seed={DISK_ID}", "-O", "^has_journal", "-m", "0",
            "-d", str(root), str(disk), f"{size_mb}m"]
    for path in root.rglob("*"):
        os.utime(path, (DISK_TIME, DISK_TIME), follow_symlinks=False)
    env = dict(os.environ, E2FSPROGS_FAKE_TIME=str(DISK_TIME), PATH=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    run = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    if run.returncode:
        raise LabError(f"mke2fs: {run.stderr.strip()}")
    shutil.rmtree(root)
    return disk
