# SPDX-License-Identifier: LGPL-2.1-or-later
"""Act=cpuset through libcpuset, in the cpuset file system at /dev/cpuset, mounted in a mount namespace that ends with
the test.

Where the kernel's cpusets are already mounted with names like cpuset.cpus, every mount has these names. There
/dev/cpuset is a directory of links to the same files, under the names they would have, and the daemon gets a
mountinfo that says it is the file system. The changes are still made to the kernel's cpusets, by the library.
"""

import functools
import os
import pathlib
import subprocess
import sys
import tempfile

import fencelib
import lib

DEV = pathlib.Path("/dev/cpuset")
# Where the controller is when /dev/cpuset has links to it.
LINKED = pathlib.Path("/dev/linked")
# The devices that programs need.
NODES = ("null", "zero", "full", "random", "urandom", "tty", "shm", "pts", "ptmx")
# Identifies the namespace.
OURS = "NUMAPLACE_TEST_MOUNTS"


def mount(*args):
    return subprocess.run(["mount", *map(str, args)], capture_output=True, text=True, check=False)


def make_dev():
    """A /dev of its own: a directory made in the host's would outlive the namespace."""
    new = pathlib.Path(tempfile.mkdtemp(prefix="np-dev-"))
    mount("-t", "tmpfs", "none", new)
    for node in filter(pathlib.Path.exists, (pathlib.Path("/dev") / name for name in NODES)):
        make = pathlib.Path.mkdir if node.is_dir() else pathlib.Path.touch
        make(new / node.name)
        mount("--bind", node, new / node.name)
    for directory in (DEV, LINKED):
        (new / directory.name).mkdir()
    mount("--move", new, "/dev")
    new.rmdir()


@functools.cache
def lacking():
    """Mounts what the tests need, once. Returns what is not possible, or nothing."""
    if OURS not in os.environ:
        return "a mount namespace of its own"
    if "libcpuset: yes" not in subprocess.run([lib.DAEMON, "--version"], capture_output=True, text=True, check=True).stdout:
        return "numaplaced built with libcpuset"
    make_dev()
    made = mount("-t", "cpuset", "none", DEV)
    if made.returncode != 0:
        return f"the cpuset file system: {made.stderr.strip()}"
    if (DEV / "cpus").exists():
        CpusetFs.controller, CpusetFs.prefix = DEV, ""
        return ""
    print("# the kernel has named its cpusets otherwise: links to them", file=sys.stderr)
    subprocess.run(["umount", DEV], check=True)
    CpusetFs.controller = LINKED
    for args in (("-t", "cgroup", "-o", "cpuset", "none", LINKED), ("-t", "tmpfs", "none", "/sys/fs/cgroup/cpuset")):
        made = mount(*args)
        if made.returncode != 0:
            return f"the cpuset controller: {made.stderr.strip()}"
    return ""


class CpusetFs(fencelib.FenceTest):
    kind = "cpusetfs"

    def setUp(self):
        lib.need_placing()
        if lacking():
            self.skipTest(f"needs {lacking()}")
        super().setUp()
        self.wrap = ()
        if self.prefix:
            self.link()

    def link(self):
        """Links in /dev/cpuset to the files of the cgroup and of those above it, and a mountinfo that presents them
        as its own."""
        for directory in (self.cgroup, *self.cgroup.parents):
            if not directory.is_relative_to(self.controller):
                break
            there = DEV / directory.relative_to(self.controller)
            there.mkdir(parents=True, exist_ok=True)
            for file in filter(pathlib.Path.is_file, directory.iterdir()):
                link = there / file.name.removeprefix(self.prefix)
                if not link.is_symlink():
                    link.symlink_to(file)
        shown = self.directory / "mountinfo"
        shown.write_text(pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8") +
                         f"9999 1 0:99 / {DEV} rw - cgroup none rw,cpuset,noprefix\n", encoding="utf-8")
        self.wrap = ("sh", "-c", 'mount --bind "$0" /proc/$$/mountinfo && exec "$@"', shown)

    def daemon(self, *args, **kwargs):
        return super().daemon(*args, wrap=self.wrap, **kwargs)

    def check_back(self, work):
        self.assertEqual(self.cpus(), self.before)
        self.assertEqual(work.masks(), {self.full})

    def test_stopped(self):
        work, daemon = self.placed()
        status = daemon.ctl("status")
        self.assertEqual((status["fences_up"], status["fence_cpusets"], status["libcpuset"]), (1, "v1", "used"))
        self.assertIn("through libcpuset", daemon.ctl_run("status").stdout)
        daemon.stop()
        self.check_back(work)

    def test_killed_and_started(self):
        """The next daemon restores what the first has left, before it places anything."""
        work, daemon = self.placed()
        daemon.kill()
        self.assertNotEqual(self.cpus(), self.before)
        (self.policies / "50-test.policy").rename(self.directory / "later")
        daemon = self.daemon().ready()
        self.check_back(work)
        (self.directory / "later").rename(self.policies / "50-test.policy")
        daemon.ctl("reload")
        self.wait_up(daemon, work)
        daemon.stop()
        self.check_back(work)

    def test_killed_and_restored(self):
        work, daemon = self.placed()
        daemon.kill()
        self.assertNotEqual(self.cpus(), self.before)
        self.daemon("--restore").process.wait(lib.DEADLINE_SEC)
        self.check_back(work)

    def test_not_alone(self):
        """A process without a policy keeps its cpuset."""
        self.policy()
        procs = self.cgroup / "cgroup.procs"
        other = self.spinner("--asleep", mark="other", preexec_fn=lambda: procs.write_text("0", encoding="ascii"))
        work = self.inside()
        daemon = self.daemon().ready()
        self.wait_means(daemon, work, "affinity", "shared")
        self.wait_home(daemon, work)
        self.assertEqual((self.cpus(), other.masks()), (self.before, {self.full}))
        daemon.stop()
        self.check_back(work)

    def test_administrators_bound(self):
        """The cpuset given by the batch system is never exceeded, and is what is restored."""
        self.policy()
        work = self.inside()
        self.before = str(lib.own_cpus()[-1])
        (self.cgroup / f"{self.prefix}cpus").write_text(self.before, encoding="ascii")
        daemon = self.daemon().ready()
        lib.wait_until("a word on it", lambda: self.means(daemon, work)[1] in ("no-home", "wide"))
        self.assertEqual((self.cpus(), work.masks()), (self.before, {self.before}))
        daemon.stop()
        self.assertEqual((self.cpus(), work.masks()), (self.before, {self.before}))

    def test_refused(self):
        """The kernel does not let a cpuset have less than one below it."""
        below = self.cgroup / "below"
        below.mkdir()
        self.addCleanup(below.rmdir)
        self.fill(below)
        self.policy()
        work = self.inside()
        daemon = self.daemon().ready()
        self.wait_means(daemon, work, "affinity", "refused")
        self.assertEqual(daemon.ctl("explain", str(work.pid))["means_error"], "Device or resource busy")
        self.assertEqual(self.cpus(), self.before)
        daemon.stop()
        self.check_back(work)


if __name__ == "__main__":
    UNSHARE = ["unshare", "--mount", "--propagation=private"]
    if OURS not in os.environ and subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0:
        os.execvpe(UNSHARE[0], [*UNSHARE, sys.executable, *sys.argv], os.environ | {OURS: "1"})
    lib.main()
