#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""org.numaplace1 on a system bus: a dbus-daemon of the test's own, with the installed bus policy."""

import json
import os
import pathlib
import re
import signal
import subprocess
from xml.etree import ElementTree

import lib

POLKIT = os.environ["NUMAPLACE_FAKE_POLKIT"]
STORM = os.environ["NUMAPLACE_BUS_STORM"]

# Rules of every system bus: without a policy file nobody may own a name or call another client.
CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
    "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
    <type>system</type>
    <listen>unix:path={socket}</listen>
    <auth>EXTERNAL</auth>
    <policy context="default">
        <allow user="*"/>
        <deny own="*"/>
        <deny send_type="method_call"/>
        <allow send_type="signal"/>
        <allow send_requested_reply="true" send_type="method_return"/>
        <allow send_requested_reply="true" send_type="error"/>
        <allow receive_type="method_call"/>
        <allow receive_type="method_return"/>
        <allow receive_type="error"/>
        <allow receive_type="signal"/>
        <allow send_destination="org.freedesktop.DBus"/>
    </policy>
    <policy user="root">
        <allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Monitoring"/>
        <allow own="org.freedesktop.PolicyKit1"/>
        <allow send_destination="org.freedesktop.PolicyKit1"/>
    </policy>
    <include>{policy}</include>
    <limit name="max_connections_per_user">4096</limit>
    <limit name="max_completed_connections">4096</limit>
    <limit name="max_incomplete_connections">4096</limit>
    <limit name="auth_timeout">600000</limit>
</busconfig>
"""

USER_MAX = 8  # BUS_REQUESTS_MAX_PER_USER of daemon/bus/authorize.h
NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
OTHER = ["setpriv", "--reuid=daemon", "--regid=daemon", "--clear-groups"]


class BusTest(lib.DaemonTest):
    def setUp(self):
        lib.need_root()
        for name in ("dbus-daemon", "busctl", "setpriv"):
            lib.need_program(name)
        super().setUp()
        self.write_policy()
        self.socket = self.directory / "system"
        self.bus_config = self.directory / "system.conf"
        policy = lib.SOURCE / "units/org.numaplace1.conf"
        self.bus_config.write_text(CONFIG.format(socket=self.socket, policy=policy), encoding="ascii")
        self.address = f"unix:path={self.socket}"
        self.env = {"DBUS_SYSTEM_BUS_ADDRESS": self.address}

    def start_bus(self):
        with open(self.directory / "bus.log", "ab") as log:
            bus = subprocess.Popen(["dbus-daemon", f"--config-file={self.bus_config}", "--nofork", "--nopidfile",
                                    "--nosyslog", "--print-address"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=log)
        self.addCleanup(bus.stdout.close)
        self.addCleanup(self.stop_bus, bus)
        self.assertTrue(bus.stdout.readline(), (self.directory / "bus.log").read_text(encoding="utf-8"))
        return bus

    @staticmethod
    def stop_bus(bus):
        bus.kill()
        bus.wait()

    def start_polkit(self, answer):
        polkit = subprocess.Popen([POLKIT, answer], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                  env=dict(os.environ, **self.env))
        self.addCleanup(polkit.stdout.close)
        self.addCleanup(self.stop_bus, polkit)
        self.assertEqual(polkit.stdout.readline(), "ready\n")
        return polkit

    def daemon_on_bus(self, *args, **kwargs):
        return self.daemon("--dry-run", "--system-bus=yes", *args, env=self.env, **kwargs).ready()

    def served(self, daemon, times=1):
        lib.wait_until("the name on the bus", lambda: daemon.log().count("serving org.numaplace1") >= times)
        return daemon

    def busctl_argv(self, *args):
        return ["busctl", f"--address={self.address}", "--json=short", f"--timeout={2 * lib.DEADLINE_SEC}", *args]

    def busctl(self, *args, who=()):
        return subprocess.run([*who, *self.busctl_argv(*args)], capture_output=True, text=True,
                              timeout=2 * lib.DEADLINE_SEC, check=False)

    def call(self, *args, who=(), path="/org/numaplace1", interface="org.numaplace1.Manager"):
        return self.busctl("call", "org.numaplace1", path, interface, *args, who=who)

    def answers(self, *args, **kwargs):
        run = self.call(*args, **kwargs)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)["data"] if run.stdout.strip() else None

    def refuses(self, says, *args, **kwargs):
        run = self.call(*args, **kwargs)
        self.assertNotEqual(run.returncode, 0, run.stdout)
        self.assertIn(says, run.stderr)

    def paused(self, daemon):
        return daemon.ctl("status")["state"] == "paused"


WORKLOAD = {"path": "/org/numaplace1/workload/_350_2dtest", "interface": "org.numaplace1.Workload"}


class Running(BusTest):
    def test_a_daemon_that_is_not_on_the_bus_says_why_not(self):
        self.start_bus()
        daemon = self.daemon("--dry-run").ready()
        run = subprocess.run([*NOBODY, lib.CTL, f"--socket={self.runtime}/bus", "run", "--policy=50-test", "true"],
                             env=dict(os.environ, **self.env), capture_output=True, text=True, timeout=lib.DEADLINE_SEC,
                             check=False)
        self.assertEqual((run.returncode, run.stderr), (125, "numaplacectl: user 65534 may only read: changes are for root "
                                                             "and for the user of the daemon\n"))
        daemon.stop()


class Reading(BusTest):
    def test_everybody_reads(self):
        self.start_bus()
        daemon = self.served(self.daemon_on_bus())
        for who in ((), NOBODY):
            status = self.answers("GetStatus", who=who)[0]
            self.assertEqual(status["pid"]["data"], daemon.process.pid)
            self.assertEqual(self.answers("Get", who=who, **WORKLOAD)[0]["name"]["data"], "50-test")
        daemon.stop()
        self.assertIn("not provided by any", self.call("GetStatus").stderr)

    def test_same_answers_as_on_the_socket(self):
        self.start_bus()
        daemon = self.served(self.daemon_on_bus())
        keys = ("name", "path", "mode", "act", "group_by", "steal", "paused", "home")
        cpus, loads = self.answers("ListCpus")[0], self.answers("GetCpuLoads")[0]
        for key in ("cpu", "node", "llc", "online"):
            self.assertEqual(loads[key]["data"], [int(cpu[key]["data"]) for cpu in cpus], key)
        self.assertEqual({len(column["data"]) for column in loads.values()}, {len(cpus)})
        workload = self.answers("ListWorkloads")[0][0]
        self.assertEqual({key: workload[key]["data"] for key in keys},
                         {key: daemon.ctl("workloads")[0][key] for key in keys})
        daemon.stop()

    def test_objects(self):
        self.start_bus()
        daemon = self.served(self.daemon_on_bus())
        tree = self.busctl("tree", "--list", "org.numaplace1").stdout.split()
        self.assertIn(WORKLOAD["path"], tree)
        objects = self.answers("GetManagedObjects", interface="org.freedesktop.DBus.ObjectManager")[0]
        properties = objects[WORKLOAD["path"]][WORKLOAD["interface"]]
        self.assertEqual((properties["Name"]["data"], properties["Paused"]["data"]), ("50-test", False))
        self.refuses("Unknown object", "Get", path=WORKLOAD["path"] + "x", interface=WORKLOAD["interface"])
        daemon.stop()

    def test_introspection_is_complete(self):
        """Every argument has a name, and the manual and the header list all members and no others."""
        self.start_bus()
        daemon = self.served(self.daemon_on_bus())
        manual = (lib.SOURCE / "man/org.numaplace1.5").read_text(encoding="utf-8")
        header = (lib.SOURCE / "include/numaplace/bus.h").read_text(encoding="utf-8")
        documented = {"method": set(re.findall(r"(?:^\.It|,) Fn (\w+)", manual, re.MULTILINE)),
                      "property or signal": set(re.findall(r"(?:^\.It|,) Sy (\w+) No", manual, re.MULTILINE))}
        served = {"method": set(), "property or signal": set()}
        for path in ("/org/numaplace1", WORKLOAD["path"]):
            xml = self.busctl("introspect", "--xml-interface", "org.numaplace1", path).stdout
            for element in ElementTree.fromstring(xml).iterfind("interface[@name]"):
                if not element.get("name").startswith("org.numaplace1."):
                    continue
                for member in element:
                    kind = "method" if member.tag == "method" else "property or signal"
                    served[kind].add(member.get("name"))
                    self.assertRegex(header, rf"\b{member.get('name')}\b")
                    for argument in member.iter("arg"):
                        self.assertTrue(argument.get("name"), member.get("name"))
        self.assertEqual(documented, served)
        self.assertGreaterEqual(len(served["method"]), 12)
        daemon.stop()


class Changing(BusTest):
    def test_without_polkit_only_root(self):
        self.start_bus()
        daemon = self.served(self.daemon_on_bus())
        for args in (("Pause", "s", ""), ("Pause", "s", "50-test"), ("Release", "s", "50-test"), ("Resume", "s", ""),
                     ("Reload",)):
            self.refuses("user 65534 may only read", *args, who=NOBODY)
        self.refuses("user 65534 may only read", "Pause", who=NOBODY, **WORKLOAD)
        self.assertFalse(self.paused(daemon))
        self.answers("Pause", "s", "")
        self.assertTrue(self.paused(daemon))
        self.answers("Resume", "s", "")
        self.answers("Pause", **WORKLOAD)
        self.assertTrue(daemon.ctl("workloads")[0]["paused"])
        self.answers("Reload")
        self.refuses("there is no workload 'nonsense'", "Pause", "s", "nonsense")
        self.refuses("there is no workload '1': expected a workload, not a process", "Pause", "s", "1")
        daemon.stop()

    def test_polkit_is_asked_for_others_only(self):
        self.start_bus()
        daemon = self.served(self.daemon_on_bus())
        polkit = self.start_polkit("yes")
        self.answers("Pause", "s", "")
        self.answers("Resume", "s", "", who=NOBODY)
        self.assertFalse(self.paused(daemon))
        # The caller decides whether polkit may ask the user for a password; busctl allows it.
        self.assertEqual(self.busctl("--allow-interactive-authorization=no", "call", "org.numaplace1", "/org/numaplace1",
                                     "org.numaplace1.Manager", "Pause", "s", "50-test", who=NOBODY).returncode, 0)
        self.answers("Release", who=NOBODY, **WORKLOAD)
        self.assertTrue(daemon.ctl("workloads")[0]["paused"])
        self.refuses("there is no workload 'nonsense'", "Pause", "s", "nonsense", who=NOBODY)
        for expected in ("org.numaplace1.manage 1", "org.numaplace1.override 0 workload=50-test",
                         "org.numaplace1.override 1 workload=50-test", "org.numaplace1.override 1 workload=nonsense"):
            self.assertRegex(polkit.stdout.readline(), rf"^system-bus-name :1\.\d+ {expected}\n$")
        daemon.stop()

    def test_who_cannot_be_assigned(self):
        self.start_bus()
        daemon = self.served(self.daemon_on_bus())
        for pid, start in (("1", "1"), (str(daemon.process.pid), "0")):
            self.refuses(f"there is no process {pid} that started at {start}", "AssignProcess", "itsb", pid, start, "50-test", "no")
        daemon.stop()

    def test_polkit_says_no(self):
        self.start_bus()
        daemon = self.served(self.daemon_on_bus())
        polkit = self.start_polkit("no")
        self.refuses("may only read", "Pause", "s", "", who=NOBODY)
        self.stop_bus(polkit)
        self.start_polkit("challenge")
        self.refuses("needs interactive authentication", "Pause", "s", "", who=NOBODY)
        self.assertFalse(self.paused(daemon))
        daemon.stop()

    def test_nothing_waits_for_polkit(self):
        self.start_bus()
        daemon = self.served(self.daemon_on_bus())
        polkit = self.start_polkit("silent")
        asking = subprocess.Popen([*NOBODY, *self.busctl_argv("call", "org.numaplace1", "/org/numaplace1",
                                                              "org.numaplace1.Manager", "Pause", "s", "")],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.stop_bus, asking)
        self.addCleanup(asking.stderr.close)
        self.assertIn("org.numaplace1.manage", polkit.stdout.readline())
        tick = self.answers("GetStatus")[0]["tick"]["data"]
        lib.wait_until("another tick", lambda: self.answers("GetStatus")[0]["tick"]["data"] > tick)
        self.assertIsNone(asking.poll())
        self.stop_bus(polkit)
        self.assertIn("may only read", asking.communicate(timeout=lib.DEADLINE_SEC)[1])
        self.assertFalse(self.paused(daemon))
        daemon.stop()

    def test_who_leaves_questions_open_keeps_nobody_else_from_asking(self):
        """Each busctl is a connection. The limit of waiting calls is per user, whatever the number of connections."""
        self.start_bus()
        daemon = self.served(self.daemon_on_bus())
        polkit = self.start_polkit("silent")
        call = self.busctl_argv("call", "org.numaplace1", "/org/numaplace1", "org.numaplace1.Manager", "Pause", "s", "")
        for who in [NOBODY] * USER_MAX + [OTHER]:
            asking = subprocess.Popen([*who, *call], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(self.stop_bus, asking)
            self.assertIn("org.numaplace1.manage", polkit.stdout.readline())
        self.refuses("too many requests await", "Pause", "s", "", who=NOBODY)
        # Root is not asked.
        self.answers("Pause", "s", "")
        self.assertTrue(self.paused(daemon))
        daemon.stop()

    def test_a_bad_reload_names_the_line(self):
        self.start_bus()
        daemon = self.served(self.daemon_on_bus())
        (self.policies / "60-bad.policy").write_text("[Match]\nComm=x\n[Steal]\nLeaseSec=never\n")
        self.refuses("60-bad.policy:4: ", "Reload")
        daemon.stop()


class Coming(BusTest):
    """The bus starts late, goes away and comes back."""

    def test_bus_comes_and_goes(self):
        daemon = self.daemon_on_bus()
        lib.wait_until("a word about it", lambda: daemon.says("cannot join the system bus"))
        daemon.ctl("status")
        bus = self.start_bus()
        self.served(daemon)
        self.answers("GetStatus")
        self.stop_bus(bus)
        lib.wait_until("a word about it", lambda: daemon.says("the system bus went away"))
        daemon.ctl("status")
        self.start_bus()
        self.served(daemon, 2)
        self.answers("GetStatus")
        log = daemon.stop()
        self.assertEqual(log.count("system bus"), 4, log)

    def test_a_pending_change_does_not_outlive_the_bus(self):
        bus = self.start_bus()
        daemon = self.served(self.daemon_on_bus())
        polkit = self.start_polkit("silent")
        asking = subprocess.Popen([*NOBODY, *self.busctl_argv("call", "org.numaplace1", "/org/numaplace1",
                                                              "org.numaplace1.Manager", "Pause", "s", "")],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(self.stop_bus, asking)
        self.assertIn("org.numaplace1.manage", polkit.stdout.readline())
        self.stop_bus(bus)
        lib.wait_until("a word about it", lambda: daemon.says("the system bus went away"))
        self.assertFalse(self.paused(daemon))
        daemon.stop()

    def test_somebody_has_the_name(self):
        self.start_bus()
        first = self.served(self.daemon_on_bus())
        second = self.daemon_on_bus(runtime=self.directory / "other")
        lib.wait_until("a word about it", lambda: second.says("another program has the name"))
        second.ctl("status")
        first.stop()
        self.served(second)
        second.stop()

    def test_not_asked_for(self):
        self.start_bus()
        daemon = self.daemon("--dry-run", env=self.env).ready()
        lib.wait_until("three ticks", lambda: daemon.ctl("status")["tick"] >= 3)
        self.assertNotIn("org.numaplace1", self.busctl("list").stdout)
        self.assertNotIn("system bus", daemon.stop())


class Signals(BusTest):
    def test_changes_are_told(self):
        self.start_bus()
        daemon = self.served(self.daemon_on_bus())
        path = self.directory / "signals"
        with open(path, "wb") as out:
            monitor = subprocess.Popen(self.busctl_argv("monitor", "org.numaplace1"), stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=subprocess.DEVNULL)
        self.addCleanup(self.stop_bus, monitor)

        def heard(*words):
            def look():
                daemon.ctl("status")
                self.answers("GetStatus")  # until the monitor has seen this, it may not be listening yet
                text = path.read_text(encoding="utf-8", errors="replace")
                return any(all(word in line for word in words) for line in text.splitlines())

            lib.wait_until(f"a signal with {words}", look)

        heard("GetStatus")
        daemon.ctl_run("pause", "50-test").check_returncode()
        heard("PropertiesChanged", WORKLOAD["path"], '"Paused"', "true")
        daemon.ctl_run("pause", "--all").check_returncode()
        heard("PropertiesChanged", "org.numaplace1.Manager", '"Paused"', "true")
        self.write_policy("60-new", mark="other")
        daemon.process.send_signal(signal.SIGHUP)
        heard("InterfacesAdded", "60-new")
        heard("PropertiesChanged", "org.numaplace1.Manager", '"Workloads"')
        (self.policies / "60-new.policy").unlink()
        daemon.process.send_signal(signal.SIGHUP)
        heard("InterfacesRemoved", "/org/numaplace1/workload/_360_2dnew")
        monitor.terminate()
        daemon.stop()


class Storm(BusTest):
    def test_placing_goes_on(self):
        """A thousand clients that listen and send requests; afterwards everything is as before."""
        self.start_bus()
        daemon = self.served(self.daemon_on_bus())
        before = self.answers("GetStatus")[0]
        storm = subprocess.Popen([STORM, "1000", "2000", "0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                 env=dict(os.environ, **self.env))
        self.addCleanup(storm.stdout.close)
        self.addCleanup(self.stop_bus, storm)
        self.assertEqual(storm.stdout.readline(), "ready\n")
        for verb in ("pause", "resume") * 2:
            tick = daemon.ctl("status")["tick"]
            daemon.ctl_run(verb, "50-test").check_returncode()
            # The request causes a tick.
            lib.wait_until("another tick", lambda before=tick: daemon.ctl("status")["tick"] > before)
        self.assertIsNone(storm.poll())
        storm.terminate()
        said = json.loads(storm.stdout.read())
        self.assertEqual(storm.wait(), 0, said)
        self.assertEqual((said["pending"], said["replies"] + said["errors"]), (0, said["calls"]), said)
        self.assertGreater(said["replies"], 0)
        # Each pause and resume is a signal to each client; the last ones may still be in flight.
        self.assertGreater(said["signals"], 1000)
        after = self.answers("GetStatus")[0]
        self.assertTrue(after["system_bus"]["data"])
        # Sanitizers keep freed memory.
        if b"__asan_init" not in pathlib.Path(lib.DAEMON).read_bytes():
            self.assertLess(after["rss_bytes"]["data"], before["rss_bytes"]["data"] + (4 << 20))
        self.assertNotIn("went away", daemon.stop())


if __name__ == "__main__":
    lib.main()
