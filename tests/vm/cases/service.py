# SPDX-License-Identifier: LGPL-2.1-or-later
"""The second boot of the case `service`: what an administrator does with the package, from the boot to the purge.

The classes run in the order of their names."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import unittest

import lib
import servicelib as service
import tap
from servicelib import DAEMON, NOBODY, WORK, ask, node_cpus, run, show, systemctl, wait_masks, work_masks

BUS = "org.numaplace1"
PATH = "/org/numaplace1"
MANAGER = (BUS, PATH, "org.numaplace1.Manager")
# Like the policy's file, which begins with a digit, escaped in the object's name.
WORKLOAD = "50-work"
OBJECT = f"{PATH}/workload/_350_2dwork"
SOCKET = f"/run/systemd/report/{BUS}"
RULES = pathlib.Path("/etc/polkit-1/rules.d/50-lab.rules")


class Boot(unittest.TestCase):
    def test_at_boot(self):
        """The service is started, and also places what the boot has started."""
        lib.wait_until("the service to run", lambda: service.is_active(DAEMON))
        wait_masks(node_cpus(1))
        self.assertEqual(show(DAEMON, "NRestarts"), "0")
        lib.wait_until("the daemon to be on the system bus", lambda: ask("status")["system_bus"])


class ServiceTest(unittest.TestCase):
    """The service runs, and the workload is on node 1."""

    def setUp(self):
        service.write_policy(1)
        # Also resets the count of starts.
        systemctl("reset-failed")
        systemctl("start", WORK, DAEMON)
        systemctl("reload", DAEMON)
        wait_masks(node_cpus(1))


class Bus(ServiceTest):
    def call(self, *words: str, prefix=(), status=0) -> str:
        return run(*prefix, "busctl", "--json=short", "call", *MANAGER, *words, status=status).stdout

    def paused(self) -> list[str]:
        return [workload["name"] for workload in ask("workloads") if workload["paused"]]

    def introspect(self, path: str) -> str:
        return re.sub(" +", " ", run(*NOBODY, "busctl", "--no-pager", "introspect", BUS, path).stdout)

    def test_introspect(self):
        text = self.introspect(PATH)
        # Two workloads: that of this test, and what the shipped policy observes.
        for line in (".GetStatus method - a{sv}", ".Pause method s -", ".Moved signal a{sv} -", ".Refused signal a{st} -",
                     ".GetManagedObjects method - a{oa{sa{sv}}}", ".Workloads property u 2 emits-change"):
            self.assertIn(f"\n{line}", text)
        self.assertIn(OBJECT, run("busctl", "--no-pager", "tree", BUS).stdout)
        self.assertIn(f'\n.Home property s "{node_cpus(1)}" emits-change', self.introspect(OBJECT))

    def test_monitor(self):
        """Listeners are told of a move, and of the new home."""
        said = pathlib.Path("/run/lab-monitor")
        with open(said, "wb") as file:
            monitor = subprocess.Popen(["busctl", "monitor", "--json=short", BUS], stdout=file, stderr=subprocess.DEVNULL)
        self.addCleanup(lambda: (monitor.kill(), monitor.wait()))
        # Not all versions report when they have begun to listen.
        lib.wait_until("the monitor to hear of a call", lambda: self.call("GetStatus") and self.heard(said, "GetStatus"))
        service.write_policy(0)
        systemctl("reload", DAEMON)
        for member in ("Moved", "PropertiesChanged"):
            lib.wait_until(f"{member} to tell the home", lambda member=member: any(
                f'"{node_cpus(0)}"' in text for text in self.heard(said, member)))
        wait_masks(node_cpus(0))

    @staticmethod
    def heard(said: pathlib.Path, member: str) -> list[str]:
        """The contents of the messages of this name."""
        # The last line may be incomplete.
        messages = [json.loads(line) for line in said.read_text(encoding="utf-8").split("\n")[:-1]]
        return [json.dumps(message["payload"]["data"]) for message in messages if message.get("member") == member]

    def test_activation(self):
        """A call starts the service, whoever calls."""
        systemctl("stop", DAEMON)
        self.assertIn('"mode"', self.call("GetStatus", prefix=NOBODY))
        self.assertTrue(service.is_active(DAEMON))

    def test_others_may_read(self):
        self.assertIn(f'"{WORKLOAD}"', self.call("ListWorkloads", prefix=NOBODY))
        self.assertIn(WORKLOAD, run(*NOBODY, service.CTL, "workloads").stdout)
        self.assertIn("set-home", run(*NOBODY, service.CTL, "--json=short", "moves").stdout)

    def test_others_may_not_change(self):
        for words in (("Pause", "s", ""), ("Pause", "s", WORKLOAD), ("Release", "s", WORKLOAD), ("Reload",)):
            with self.subTest(words=words):
                self.call(*words, prefix=NOBODY, status=1)
        self.assertNotEqual(run(*NOBODY, service.CTL, "pause", WORKLOAD, status=None).returncode, 0)
        self.assertEqual((self.paused(), ask("status")["state"]), ([], "running"))
        self.assertEqual(work_masks(), {node_cpus(1)})

    def test_rule_of_polkit(self):
        """One user may change one workload."""
        self.addCleanup(RULES.unlink)
        RULES.write_text(f"""polkit.addRule(function(action, subject) {{
            if (action.id == "org.numaplace1.override" && action.lookup("workload") == "{WORKLOAD}" && subject.user == "nobody")
                return polkit.Result.YES;
        }});\n""", encoding="ascii")
        pause = (*NOBODY, "busctl", "call", *MANAGER, "Pause", "s")
        lib.wait_until("polkit to have read its rules", lambda: run(*pause, WORKLOAD, status=None).returncode == 0)
        self.assertEqual(self.paused(), [WORKLOAD])
        run(*pause, "", status=1)
        self.assertEqual(ask("status")["state"], "running")
        self.call("Release", "s", WORKLOAD, prefix=NOBODY)
        self.assertEqual(work_masks(), {service.online()})
        self.call("Resume", "s", WORKLOAD, prefix=NOBODY)
        wait_masks(node_cpus(1))


class Confinement(ServiceTest):
    """The daemon needs nothing that the unit forbids."""

    def test_verify(self):
        found = run("systemd-analyze", "--no-pager", "--man=no", "verify", DAEMON)
        self.assertEqual((found.stdout + found.stderr).strip(), "")

    def test_exposure(self):
        line = run("systemd-analyze", "--no-pager", "security", DAEMON).stdout.strip().splitlines()[-1]
        print(f"# {line}")
        self.assertLessEqual(float(re.search(r": ([0-9.]+) ", line)[1]), 2.0)

    def test_reading(self):
        """Program and environment of another user's process were read; otherwise it would not be placed."""
        status = ask("status")
        for key in ("schedstat", "task_schedstat", "psi", "psi_trigger", "numa"):
            self.assertTrue(status[key], key)
        self.assertEqual(status["outcomes"].get("refused", 0), 0)
        lib.wait_until("it to be known where its memory lies", lambda: ask("workloads")[0]["memory_evidence"])
        self.assertGreater(sum(node["bytes"] for node in ask("workloads")[0]["memory"]), 0)

    def sysctl(self, name: str, value: int):
        path = pathlib.Path("/proc/sys", name)
        self.addCleanup(path.write_text, path.read_text(encoding="ascii"), "ascii")
        path.write_text(str(value), encoding="ascii")

    def start_memory(self) -> str:
        """The workload with memory, at home on node 0, where it allocates it. Returns its process."""
        policy = service.POLICIES / "60-memory.policy"
        service.MEMORY_GO.unlink(missing_ok=True)
        policy.write_text(service.MEMORY_POLICY % 0, encoding="ascii")
        self.addCleanup(policy.unlink)
        systemctl("reload", DAEMON)
        run("systemd-run", "-q", f"--unit={service.MEMORY}", "--property=User=nobody", "python3", "-c", service.MEMORY_PROGRAM)
        self.addCleanup(systemctl, "stop", service.MEMORY)
        pid = show(service.MEMORY, "MainPID")
        lib.wait_until("it to be on node 0", lambda: set(lib.affinity(pid).values()) == {node_cpus(0)})
        service.MEMORY_GO.touch()
        lib.wait_until("it to have its memory", lambda: sum(service.node_bytes(pid).values()) >= service.MEMORY_BYTES)
        self.assertGreater(service.node_bytes(pid).get(0, 0), service.MEMORY_BYTES * 0.9)
        return pid

    def test_memory_follows(self):
        """Its home changes, and its memory is moved there."""
        pid = self.start_memory()
        (service.POLICIES / "60-memory.policy").write_text(service.MEMORY_POLICY % 1, encoding="ascii")
        systemctl("reload", DAEMON)
        lib.wait_until("its memory to be on node 1", lambda: service.node_bytes(pid).get(1, 0) > service.MEMORY_BYTES * 0.9)
        self.assertEqual(set(lib.affinity(pid).values()), {node_cpus(1)})

    def test_calls(self):
        """A program that makes the calls of the daemon, in a copy of the unit."""
        # Debian's default is 3, see below.
        self.sysctl("kernel/perf_event_paranoid", 2)
        self.run_sandboxed("/lab/cases/sandbox.py", self.start_memory(), "perf")

    def test_page_faults_refused(self):
        """Level 3 is Debian's own, and allows only CAP_SYS_ADMIN: nothing else depends on that."""
        self.sysctl("kernel/perf_event_paranoid", 3)
        self.run_sandboxed("/lab/cases/sandbox.py", show(WORK, "MainPID"), "no-perf")

    def run_sandboxed(self, *argv: str):
        text = pathlib.Path(show(DAEMON, "FragmentPath")).read_text(encoding="utf-8")
        text = re.sub(r"^(Exec|Restart|Watchdog|RuntimeDirectory|Type|Alias).*\n", "", text, flags=re.MULTILINE)
        command = ["/usr/bin/python3", *argv]
        copy = pathlib.Path("/run/systemd/system/np-sandbox.service")
        copy.write_text(text.replace("[Service]", f"[Service]\nType=oneshot\nExecStart={' '.join(command)}", 1), encoding="utf-8")
        self.addCleanup(copy.unlink)
        systemctl("daemon-reload")
        systemctl("start", copy.name, status=None)
        run("journalctl", "--sync")
        said = run("journalctl", "--no-pager", "-o", "cat", "-b", "-u", copy.name).stdout
        print("".join(f"# {line}\n" for line in said.splitlines()), end="")
        self.assertEqual(show(copy.name, "Result"), "success")


class Fences(ServiceTest):
    """The home as the cpuset of a unit's processes, set by the sandboxed daemon."""

    def test_unit(self):
        service.write_policy(1, act="unit")
        systemctl("reload", DAEMON)
        service.wait_allowed(node_cpus(1))
        systemctl("stop", DAEMON)
        self.assertIn(show(WORK, "AllowedCPUs"), ("", service.online()))
        self.assertEqual(service.fence_dropins(), [])
        self.assertEqual(work_masks(), {service.online()})

    def test_delegated(self):
        """Below a unit with Delegate=yes the cpuset is written directly."""
        run("systemd-run", "-q", "--unit=np-delegated", "--property=Delegate=yes", "sleep", "infinity")
        self.addCleanup(systemctl, "stop", "np-delegated")
        top = pathlib.Path("/sys/fs/cgroup" + show("np-delegated.service", "ControlGroup"))
        work = top / "work"
        work.mkdir()
        (work / "cgroup.procs").write_text(show("np-delegated.service", "MainPID"), encoding="ascii")
        (top / "cgroup.subtree_control").write_text("+cpuset", encoding="ascii")
        (service.POLICIES / "60-delegated.policy").write_text(
            "[Match]\nUnit=np-delegated.service\n[Workload]\nMinAgeSec=0\nAct=cpuset\n[Placement]\nMode=fixed\nNodes=0\n",
            encoding="ascii")
        self.addCleanup((service.POLICIES / "60-delegated.policy").unlink)
        systemctl("reload", DAEMON)
        cpus = work / "cpuset.cpus"
        lib.wait_until("the cpuset", lambda: cpus.read_text(encoding="ascii").strip() == node_cpus(0))
        systemctl("stop", DAEMON)
        # The kernel does not take the last CPUs from a cgroup in which something runs.
        self.assertIn(cpus.read_text(encoding="ascii").strip(), ("", service.online()))


class Life(ServiceTest):
    def test_reload_of_a_broken_file(self):
        """The previous policy stays in force, and the journal names the bad line."""
        since = service.cursor()
        service.write_policy("banana")
        systemctl("reload", DAEMON, status=1)
        self.assertTrue(service.is_active(DAEMON))
        self.assertEqual(work_masks(), {node_cpus(1)})
        said = service.records(since)
        self.assertEqual([record["MESSAGE_ID"] for record in said],
                         [service.messages()[name] for name in ("CONFIG", "RELOAD_FAILED")], said)
        self.assertIn("50-work.policy:", said[0]["MESSAGE"])
        # New processes are placed by the previous policy.
        systemctl("restart", WORK)
        wait_masks(node_cpus(1))
        service.write_policy(0)
        systemctl("reload", DAEMON)
        wait_masks(node_cpus(0))

    def test_killed(self):
        """The service manager starts it again, which first restores: without a policy the workload is as before."""
        since, pid = service.cursor(), show(DAEMON, "MainPID")
        (service.POLICIES / "50-work.policy").unlink()
        os.kill(int(pid), signal.SIGKILL)
        lib.wait_until("another daemon", lambda: show(DAEMON, "MainPID") not in ("0", pid) and service.is_active(DAEMON))
        self.assertEqual(work_masks(), {service.online()})
        self.assertIn(service.messages()["RECOVERED"], [record.get("MESSAGE_ID") for record in service.records(since)])

    def test_stopped(self):
        systemctl("stop", DAEMON)
        self.assertEqual(work_masks(), {service.online()})
        self.assertEqual(show(DAEMON, "Result"), "success")

    def test_started_late(self):
        systemctl("stop", DAEMON)
        systemctl("restart", WORK)
        self.assertEqual(work_masks(), {service.online()})
        systemctl("start", DAEMON)
        wait_masks(node_cpus(1))


class Metrics(ServiceTest):
    """Metrics for systemd-report."""

    def call(self, method: str) -> list[dict]:
        """The replies to an unprivileged caller."""
        code = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode() + bytes(1));"
                "s.shutdown(socket.SHUT_WR); sys.stdout.write(s.makefile().read())")
        text = run(*NOBODY, "python3", "-c", code, SOCKET, json.dumps({"method": f"io.systemd.Metrics.{method}", "more": True})).stdout
        return [json.loads(reply)["parameters"] for reply in text.split("\0")[:-1]]

    def test_varlink(self):
        # With the slice that systemd makes for units of one template.
        self.addCleanup(systemctl, "stop", "numaplace-metrics.socket", r"system-numaplace\x2dmetrics.slice")
        systemctl("start", "numaplace-metrics.socket")
        listed = self.call("List")
        self.assertIn({"name": "org.numaplace1.WorkloadProcesses", "value": 1, "object": WORKLOAD}, listed)
        self.assertLessEqual({metric["name"] for metric in listed}, {family["name"] for family in self.call("Describe")})
        # Each connection is served by an instance of its own, of which nothing is left.
        lib.wait_until("them to end", lambda: "numaplace-metrics@" not in run("systemctl", "list-units", "--all", "--plain").stdout)
        if shutil.which("varlinkctl"):
            told = run(*NOBODY, "varlinkctl", "call", "--more", "--json=short", SOCKET, "io.systemd.Metrics.List", "{}").stdout
            names = {json.loads(line.strip("\x1e"))["name"] for line in told.splitlines() if line.strip("\x1e")}
            self.assertEqual(names, {metric["name"] for metric in listed})
            for interface in ("io.systemd.Metrics", "org.varlink.service"):
                self.assertIn(f"interface {interface}", run("varlinkctl", "introspect", SOCKET, interface).stdout)


class Story(ServiceTest):
    """journalctl -t numaplaced."""

    def test_of_a_change(self):
        """A few lines, each with its id."""
        since, ids = service.cursor(), service.messages()
        service.write_policy(0)
        systemctl("reload", DAEMON)
        wait_masks(node_cpus(0))
        told = lib.wait_until("the move to be told", lambda: [
            record for record in service.records(since) if record.get("MESSAGE_ID") == ids["ACTION"]])
        self.assertEqual(told[0]["NUMAPLACE_WORKLOAD"], WORKLOAD)
        story = service.records(since)
        print("".join(f"# {record['MESSAGE']}\n" for record in story), end="")
        self.assertLessEqual(len(story), 4)
        self.assertEqual([record["MESSAGE"] for record in story if record.get("MESSAGE_ID") not in ids.values()], [])

    def test_of_a_restart(self):
        """The end and the beginning of a workload are a line each; no event is no line."""
        since = service.cursor()
        systemctl("restart", WORK)
        wait_masks(node_cpus(1))
        tick = ask("status")["tick"]
        lib.wait_until("some ticks", lambda: ask("status")["tick"] > tick + 5)
        story = service.records(since)
        print("".join(f"# {record['MESSAGE']}\n" for record in story), end="")
        self.assertLessEqual(len(story), 3)

    def test_catalog(self):
        """Every id has an explanation, whose fields are filled in from the record."""
        listed = run("journalctl", "--list-catalog").stdout
        for name, message_id in service.messages().items():
            self.assertIn(message_id, listed, name)
        text = service.journal("-x", "-n", "200")
        self.assertIn("Subject: Task placement has started", text)
        self.assertRegex(text, rf"Subject: set-home of workload {WORKLOAD} \(rule ")
        self.assertNotRegex(text, r"@NUMAPLACE_\w+@")


class Uninstall(unittest.TestCase):
    """After a removal while a placement is in force, everything is as before the installation."""

    def check(self, verb: str, configuration: str, before_removal=lambda: None, act: str = "unit"):
        systemctl("start", WORK)
        run("dpkg", "--purge", "numaplace")
        before = service.State()
        self.assertEqual(work_masks(), {service.online()})
        run("dpkg", "-i", *service.PACKAGES)
        service.CONFIG.write_text(configuration, encoding="ascii")
        service.write_policy(1, act)
        systemctl("reset-failed")
        systemctl("restart", DAEMON)
        wait_masks(node_cpus(1))
        service.wait_allowed(node_cpus(1) if act == "unit" else "")
        before_removal()
        run("dpkg", verb, "numaplace")
        self.assertEqual(before.changes(), [])
        self.assertEqual(work_masks(), {service.online()})
        self.assertFalse(service.is_active(DAEMON))

    def test_purged(self):
        self.check("--purge", "")
        for path in ("/run/numaplace", "/usr/lib/numaplace", "/usr/sbin/numaplaced"):
            self.assertFalse(os.path.exists(path), path)
        # An administrator's own files stay.
        self.assertTrue((service.POLICIES / "50-work.policy").exists())

    def test_removed(self):
        self.check("--remove", "")

    def test_removed_after_a_crash(self):
        """The unit restores what a crash has left. If an administrator has removed that from the unit, only the
        journal knows the placements when the package is removed."""
        dropin = pathlib.Path(f"/run/systemd/system/{DAEMON}.d/50-no-post.conf")

        def crash():
            systemctl("kill", "--signal=KILL", DAEMON)
            systemctl("stop", DAEMON)
            self.assertEqual(work_masks(), {service.online()})
            dropin.parent.mkdir(parents=True)
            self.addCleanup(systemctl, "daemon-reload")
            self.addCleanup(shutil.rmtree, dropin.parent)
            dropin.write_text("[Service]\nExecStopPost=\n", encoding="ascii")
            systemctl("daemon-reload")
            systemctl("start", DAEMON)
            wait_masks(node_cpus(1))
            systemctl("kill", "--signal=KILL", DAEMON)
            systemctl("stop", DAEMON)
            self.assertEqual(work_masks(), {node_cpus(1)})

        self.check("--purge", "", crash, act="affinity")

    def test_removed_with_placements_kept(self):
        self.check("--purge", "[Daemon]\nKeepOnStop=yes\n")


if __name__ == "__main__":
    try:
        tap.main()
    except SystemExit as end:
        if end.code:
            print("".join(f"# {line}\n" for line in service.journal("-n", "60").splitlines()))
        sys.exit(end.code)
