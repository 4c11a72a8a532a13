# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the cases of the installed package share: the programs of the system, and a workload that is a unit of another
user."""

import contextlib
import functools
import json
import os
import pathlib
import re
import subprocess

import lib

# The programs of the package, not those of the build.
os.environ["PATH"] = os.environ["PATH"].replace("/lab/bin:", "")
CTL = "numaplacectl"
DAEMON = "numaplaced.service"
CONFIG = pathlib.Path("/etc/numaplace/numaplaced.conf")
POLICIES = pathlib.Path("/etc/numaplace/policy.d")
PACKAGES = sorted(map(str, pathlib.Path("/lab/packages").glob("*.deb")))
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

WORK = "np-work.service"
WORK_FILE = pathlib.Path("/etc/systemd/system", WORK)
# Its program is on the disk of the build, which is there when the job is.
WORK_TEXT = """[Unit]
After=lab.service
[Service]
ExecStart=/lab/bin/spinner --asleep --threads=3
User=nobody
Environment=NUMAPLACE_TEST=of-the-unit
[Install]
WantedBy=multi-user.target
"""

# 64 MiB of memory, allocated on request, and written for ever.
MEMORY = "np-memory.service"
MEMORY_BYTES = 64 << 20
MEMORY_GO = pathlib.Path("/run/lab-memory-go")
MEMORY_PROGRAM = f"""import mmap, os, time
while not os.path.exists("{MEMORY_GO}"):
    time.sleep(0.1)
memory = mmap.mmap(-1, {MEMORY_BYTES}, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
while True:
    for at in range(0, len(memory), mmap.PAGESIZE):
        memory[at] = 1
    time.sleep(0.1)
"""
MEMORY_POLICY = f"""[Match]
Unit={MEMORY}
[Workload]
MinAgeSec=0
[Placement]
Mode=fixed
Nodes=%s
"""

# Only those who may inspect processes of other users can read what matches it.
POLICY = f"""[Match]
Unit={WORK}
Exe=/lab/bin/spinner
Environment=NUMAPLACE_TEST=of-the-unit
[Workload]
MinAgeSec=0
Act=%s
[Placement]
Mode=fixed
Nodes=%s
"""


def run(*argv: str, status: int | None = 0) -> subprocess.CompletedProcess:
    """Ends the test when the program ends with another status; None: any status is allowed."""
    found = subprocess.run(argv, capture_output=True, text=True, check=False)
    if status is not None and found.returncode != status:
        raise AssertionError(f"{' '.join(argv)}: status {found.returncode}\n{found.stdout}{found.stderr}\n{journal('-n', '20')}")
    return found


def systemctl(*args: str, status: int | None = 0) -> str:
    return run("systemctl", *args, status=status).stdout.strip()


def show(unit: str, name: str) -> str:
    return systemctl("show", "--value", f"--property={name}", unit)


def is_active(unit: str) -> bool:
    return systemctl("is-active", unit, status=None) == "active"


def ask(*args: str):
    return json.loads(run(CTL, "--json=short", *args).stdout)


def node_cpus(node: int) -> str:
    return pathlib.Path(f"/sys/devices/system/node/node{node}/cpulist").read_text(encoding="ascii").strip()


def online() -> str:
    return pathlib.Path("/sys/devices/system/cpu/online").read_text(encoding="ascii").strip()


def work_masks() -> set[str]:
    return set(lib.affinity(show(WORK, "MainPID")).values())


def wait_masks(cpus: str) -> None:
    lib.wait_until(f"{WORK} to have the CPUs {cpus}", lambda: work_masks() == {cpus}, 60)


def write_policy(nodes: int | str, act: str = "affinity") -> None:
    (POLICIES / "50-work.policy").write_text(POLICY % (act, nodes), encoding="ascii")


def node_bytes(pid: str) -> dict[int, int]:
    """The node of its largest mapping, where the memory is."""
    found = {}
    for line in pathlib.Path(f"/proc/{pid}/numa_maps").read_text(encoding="utf-8").splitlines():
        unit = int((re.search(r"kernelpagesize_kB=(\d+)", line) or [0, 4])[1]) << 10
        pages = {int(node): int(n) * unit for node, n in re.findall(r" N(\d+)=(\d+)", line)}
        found = max(found, pages, key=lambda nodes: sum(nodes.values()))
    return found


def wait_allowed(cpus: str) -> None:
    """The unit's AllowedCPUs= as the manager shows it; cpuset confinement follows some seconds after the home."""
    lib.wait_until(f"{WORK} to have AllowedCPUs={cpus}", lambda: show(WORK, "AllowedCPUs").replace(" ", ",") == cpus)


def fence_dropins() -> list[str]:
    """The service manager's files for cpuset confinement, below /run, where the sandbox must allow their removal."""
    return [str(path) for path in pathlib.Path("/run/systemd").glob(f"*/{WORK}*.d/50-Allowed*.conf")]


#
# The journal
#


def journal(*args: str) -> str:
    subprocess.run(["journalctl", "--sync"], check=False)
    return subprocess.run(["journalctl", "--no-pager", "-q", "-t", "numaplaced", *args], capture_output=True, text=True,
                          check=False).stdout


def records(since: str) -> list[dict]:
    """What the daemon said after a cursor."""
    return [json.loads(line) for line in journal("-o", "json", f"--after-cursor={since}").splitlines()]


def cursor() -> str:
    return json.loads(journal("-o", "json", "-n", "1"))["__CURSOR"]


@functools.cache
def messages() -> dict[str, str]:
    """Names and ids that users of the package depend on."""
    text = pathlib.Path("/usr/include/numaplace/messages.h").read_text(encoding="ascii")
    return dict(re.findall(r"NUMAPLACE_MESSAGE_(\w+)\s+\"(\w+)\"", text))


#
# The state of the system
#


def masks() -> dict[str, set[str]]:
    """The CPUs of the threads of each process, whose key includes its start time."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            started = (path / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[19]
            found[f"{path.name} of {started}"] = set(lib.affinity(path.name).values())
    return found


def properties() -> dict[str, str]:
    """The CPUs and nodes of each unit that may have any, as the service manager reports them."""
    text = systemctl("show", "--property=Id,AllowedCPUs,AllowedMemoryNodes,CPUAffinity", "--all", "*.service", "*.slice",
                     "*.scope")
    found = {}
    for block in text.split("\n\n"):
        name = re.search(r"^Id=(.*)$", block, re.MULTILINE)
        if name:
            found[name[1]] = block
    return found


def dropins() -> set[str]:
    """Drop-ins that set something: a setting for this boot is reset by an empty one."""
    return {str(path) for top in ("/run/systemd", "/etc/systemd") for path in pathlib.Path(top).rglob("*.d/*.conf")
            if re.search(r"^\w+=.", path.read_text(encoding="utf-8"), re.MULTILINE)}


class State:
    """A snapshot to be compared with a later one, process by process and unit by unit."""

    def __init__(self):
        self.masks, self.properties, self.dropins = masks(), properties(), dropins()

    def changes(self) -> list[str]:
        now = State()
        found = [f"process {name}: {mask}, now {now.masks[name]}" for name, mask in self.masks.items()
                 if now.masks.get(name, mask) != mask]
        found += [f"{text}, now {now.properties[name]}" for name, text in self.properties.items()
                  if now.properties.get(name, text) != text]
        return found + [f"new: {path}" for path in now.dropins - self.dropins]
