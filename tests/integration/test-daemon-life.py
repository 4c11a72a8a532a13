#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Start, ready, reload, stop; and every way of not starting."""

import json
import os
import signal
import subprocess

import lib


class CommandLine(lib.DaemonTest):
    def run_daemon(self, *args):
        return subprocess.run([lib.DAEMON, *args], capture_output=True, text=True, timeout=lib.DEADLINE_SEC,
                              check=False)

    def test_usage_errors(self):
        for args, says in {
            ("--frobnicate",): "--frobnicate",
            ("-x",): "-x",
            ("--config",): "--config",
            ("--policy-dir=",): "'--policy-dir' needs a value",
            ("--record", ""): "'--record' needs a value",
            ("extra",): "extra",
            ("--rehearse=1",): "--rehearse=1",
            ("--rehearse=many",): "--rehearse=many",
            ("--rehearse=-2",): "--rehearse=-2",
            ("--synthetic=numa:2 pu:2",): "--dry-run",
            ("--topology-xml=/x",): "--dry-run",
            ("--dry-run", "--topology-xml=/x", "--synthetic=numa:2 pu:2"): "exclude each other",
            ("--root=/tmp",): "--topology-xml",
            ("--restore", "--once"): "--restore",
            ("--restore", "--dry-run"): "--restore",
            ("--restore", "--record=/x"): "--record=",
            ("--policy-dir=/x",) * 65: "--policy-dir",
        }.items():
            with self.subTest(args=args):
                run = self.run_daemon(*args)
                self.assertEqual(run.returncode, lib.USAGE, run.stderr)
                self.assertEqual(run.stderr.count("\n"), 1, run.stderr)
                self.assertIn(says, run.stderr)

    def test_help_and_version(self):
        run = self.run_daemon("--help")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertIn("--rehearse", run.stdout)
        run = self.run_daemon("--version")
        self.assertEqual((run.returncode, run.stderr), (0, ""))
        self.assertRegex(run.stdout, r"^numaplaced \d+\.\d+")


class Record(lib.DaemonTest):
    def replay(self, path, status=0):
        run = subprocess.run([lib.CTL, "--json=short", "replay", str(path)], capture_output=True, text=True, timeout=lib.DEADLINE_SEC,
                             check=False)
        self.assertEqual(run.returncode, status, run.stdout + run.stderr)
        return json.loads(run.stdout) if run.stdout else run.stderr

    def test_replay(self):
        lib.need_placing()
        self.write_policy()
        record = self.directory / "record"
        daemon = self.daemon(f"--record={record}").ready()
        workload = self.spinner("--threads=3")
        self.wait_home(daemon, workload)
        daemon.ctl("pause", "50-test")
        self.write_policy(Steal={"Steal": "no"})
        daemon.process.send_signal(signal.SIGHUP)
        lib.wait_until("the policy to be read again", lambda: daemon.ctl("show", "50-test")["steal"] is False)
        ticks = daemon.ctl("status")["tick"]
        lib.wait_until("ticks under it", lambda: daemon.ctl("status")["tick"] > ticks + 3)
        daemon.stop()
        self.assertEqual(record.stat().st_mode & 0o777, 0o600)
        replay = self.replay(record)
        self.assertGreater(replay["plans"], 3)
        self.assertEqual((replay["same"], replay["different"]), (replay["plans"], []))
        text = record.read_text(encoding="ascii")
        self.assertEqual(text.count("\npolicy name=") + text.startswith("policy name="), 2)

        # A plan that differs from what comes out, a file that is cut, one that already exists, no file.
        record.write_text(text.replace("set-home rule=", "set-home role="), encoding="ascii")
        replay = self.replay(record, status=1)
        self.assertGreater(len(replay["different"]), 0)
        self.assertIn("set-home rule=", replay["different"][0]["now"])
        record.write_text(text[:-20], encoding="ascii")
        self.assertRegex(self.replay(record, status=1), '^{"error":".*record: entry [0-9]+, head: expected all bytes')
        self.daemon(f"--record={record}").fails(1, f"cannot create the recording {record}: File exists")
        self.assertIn("No such file", self.replay(self.directory / "none", status=1))


class BadInput(lib.DaemonTest):
    def test_bad_configuration(self):
        for text, says in {
            b"[Daemon]\nFastTickSec=1 parsec\n": "numaplaced.conf:2: ",
            b"[Daemon]\nMaxTasks=-1\n": "numaplaced.conf:2: ",
            b"[Daemon]\nMaxTasks=99999999999999999999\n": "numaplaced.conf:2: ",
            b"[Daemon]\nDryRun\n": "numaplaced.conf:2: ",
            b"[Daemon]\nDryRun=\0yes\n": "numaplaced.conf",
            b"\x7fELF\x02\x01\x01\0\0\0": "numaplaced.conf",
            b"x" * 10_000_000: "numaplaced.conf",
        }.items():
            with self.subTest(text=text[:30]):
                self.config.write_bytes(text)
                self.daemon().fails(lib.CONFIG, says)
                self.assertFalse(self.runtime.exists(), "nothing may be made before the files are good")

    def test_missing_configuration(self):
        self.config.unlink()
        self.daemon().fails(lib.CONFIG, "numaplaced.conf")

    def test_bad_policies(self):
        (self.policies / "10-bad.policy").write_text("[Match]\nComm=x\n[Placement]\nMode=sideways\n")
        (self.policies / "20-bad.policy").write_text("[Match]\nComm=x\n[Placement]\nMode=fixed\nNodes=77\n")
        log = self.daemon().fails(lib.CONFIG, "10-bad.policy:4: ", "20-bad.policy")
        self.assertIn("77", log)

    def test_unknown_keys_only_warn(self):
        self.config.write_text("[Daemon]\nFastTack=1s\n")
        daemon = self.daemon("--dry-run").ready()
        self.assertTrue(daemon.says("numaplaced.conf:2: "))
        daemon.stop()

    def test_many_workloads(self):
        for i in range(1024):
            self.write_policy(f"5{i}-test")
        daemon = self.daemon("--dry-run").ready()
        self.assertEqual(len(daemon.ctl("workloads")), 1024)
        daemon.stop()
        self.write_policy("60-test")
        self.daemon("--dry-run").fails(lib.CONFIG, "more than 1024 policies")

    def test_constants_only_warn(self):
        self.config.write_text("[Daemon]\nIdleCPU=25%\n")
        self.write_policy(Steal={"WaitPermille": "100"})
        daemon = self.daemon("--dry-run").ready()
        self.assertTrue(daemon.says("numaplaced.conf:2: ignoring IdleCPU=, which is always 5%"))
        self.assertTrue(daemon.says("ignoring WaitPermille=, which is always 250: "))
        daemon.stop()


class Life(lib.DaemonTest):
    def test_ready_and_stop(self):
        notify = lib.NotifySocket(self)
        daemon = self.daemon("--dry-run", env={"NOTIFY_SOCKET": notify.path})
        notify.wait_for("READY=1")
        notify.wait_for("STATUS=dry-run")
        self.assertEqual(daemon.ctl("status")["mode"], "dry-run")
        daemon.stop()
        notify.wait_for("STOPPING=1")
        self.assertFalse((self.runtime / "bus").exists())

    def test_watchdog_is_fed_by_ticks(self):
        """Even with nothing to do, when the next one would be in two seconds."""
        notify = lib.NotifySocket(self)
        daemon = self.daemon("--dry-run", env={"NOTIFY_SOCKET": notify.path, "WATCHDOG_USEC": "500000"}).ready()
        ticks = []
        for _ in range(10):
            notify.wait_for("WATCHDOG=1")
            ticks.append(daemon.ctl("status"))
        self.assertGreaterEqual(ticks[-1]["tick"] - ticks[0]["tick"], 9)
        self.assertGreater(ticks[-1]["fast_tick_usec"], 500000)
        daemon.stop()

    def test_no_watchdog_is_not_fed(self):
        notify = lib.NotifySocket(self)
        self.daemon("--dry-run", env={"NOTIFY_SOCKET": notify.path}).ready().stop()
        notify.wait_for("STOPPING=1")
        self.assertNotIn("WATCHDOG=1", notify.heard)

    def test_watchdog_of_somebody_else_is_not_fed(self):
        notify = lib.NotifySocket(self)
        env = {"NOTIFY_SOCKET": notify.path, "WATCHDOG_USEC": "500000", "WATCHDOG_PID": "1"}
        self.daemon("--dry-run", env=env).ready().stop()
        notify.wait_for("STOPPING=1")
        self.assertNotIn("WATCHDOG=1", notify.heard)

    def test_interrupt_stops_too(self):
        self.daemon("--dry-run").ready().stop(signal.SIGINT)

    def test_second_daemon(self):
        first = self.daemon("--dry-run").ready()
        log = self.daemon("--dry-run").fails(lib.RUNNING, f"another numaplaced (pid {first.process.pid})")
        self.assertEqual(log.count("\n"), 1, log)
        self.assertIsNone(first.process.poll())
        first.ctl("status")  # its socket was not removed
        first.stop()

    def test_restart_over_a_stale_socket(self):
        first = self.daemon("--dry-run").ready()
        first.kill()
        self.assertTrue((self.runtime / "bus").exists())
        self.daemon("--dry-run").ready().stop()

    def test_unusable_runtime_directories(self):
        regular = self.directory / "file"
        regular.write_text("")
        open_to_all = self.directory / "open"
        open_to_all.mkdir()
        open_to_all.chmod(0o777)
        link = self.directory / "link"
        link.symlink_to("/tmp")
        for path in (regular, open_to_all, link, self.directory / "a/b/c", self.directory / ("x" * 200)):
            with self.subTest(path=path):
                log = self.daemon("--dry-run", runtime=path).fails(lib.FAILED)
                self.assertEqual(log.count("\n"), 1, log)
                self.assertIn(str(path), log)

    def test_runtime_directory_of_somebody_else(self):
        lib.need_root()
        self.runtime.mkdir()
        os.chown(self.runtime, 65534, 65534)
        self.daemon("--dry-run").fails(lib.FAILED, "belongs to user 65534")

    def test_rehearsal_of_too_many_nodes(self):
        self.daemon("--dry-run", "--rehearse=100000", rehearse=False).fails(lib.FAILED, "topology")


class Stopped(lib.DaemonTest):
    """A daemon that exists but does nothing: SIGSTOP, or a debugger."""

    NO_ANSWER = 5  # of numaplacectl(1)

    def test_numaplacectl_gives_up(self):
        daemon = self.daemon("--dry-run").ready()
        daemon.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, daemon.process.pid, os.WSTOPPED | os.WNOWAIT)
        # The command of run has a status of its own.
        verbs = {("status",): self.NO_ANSWER, ("release", "--all"): self.NO_ANSWER, ("moves", "-f"): self.NO_ANSWER,
                 ("run", "--policy=x", "true"): 125}
        runs = [subprocess.Popen([lib.CTL, f"--socket={self.runtime}/bus", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True) for args in verbs]
        for run, (args, status) in zip(runs, verbs.items()):
            out, err = run.communicate(timeout=4 * lib.DEADLINE_SEC)
            with self.subTest(args=args):
                self.assertEqual((run.returncode, out), (status, ""), err)
                self.assertEqual(err.count("\n"), 1, err)
                self.assertIn("does not answer", err)
        daemon.process.send_signal(signal.SIGCONT)
        self.assertEqual(daemon.ctl("status")["state"], "running")
        daemon.stop()


class Reload(lib.DaemonTest):
    def setUp(self):
        super().setUp()
        self.write_policy("50-one")

    def names(self, daemon):
        return [w["name"] for w in daemon.ctl("workloads")]

    def test_hangup_takes_new_policies(self):
        notify = lib.NotifySocket(self)
        daemon = self.daemon("--dry-run", env={"NOTIFY_SOCKET": notify.path}).ready()
        notify.wait_for("READY=1")
        self.write_policy("60-two", mark="other")
        daemon.process.send_signal(signal.SIGHUP)
        notify.wait_for("RELOADING=1")
        notify.wait_for("MONOTONIC_USEC=")
        notify.wait_for("READY=1")
        notify.wait_for("STATUS=dry-run: 2 workloads")
        self.assertEqual(self.names(daemon), ["50-one", "60-two"])
        # A failed reload is finished, too.
        (self.policies / "70-bad.policy").write_text("[Match]\nComm=x\n[Steal]\nLeaseSec=never\n")
        daemon.process.send_signal(signal.SIGHUP)
        notify.wait_for("RELOADING=1")
        notify.wait_for("READY=1")
        self.assertEqual(self.names(daemon), ["50-one", "60-two"])
        daemon.stop()

    def test_bad_reload_changes_nothing(self):
        daemon = self.daemon("--dry-run").ready()
        (self.policies / "60-bad.policy").write_text("[Match]\nComm=x\n[Steal]\nLeaseSec=never\n")
        run = daemon.ctl_run("reload")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("60-bad.policy:4: ", run.stderr)
        self.assertTrue(daemon.says("60-bad.policy:4: "))
        self.assertTrue(daemon.says("keeping the previous configuration and policies"))
        self.assertEqual(self.names(daemon), ["50-one"])

        (self.policies / "60-bad.policy").unlink()
        self.config.write_text("[Daemon]\nFastTickSec=never\n")
        self.assertNotEqual(daemon.ctl_run("reload").returncode, 0)
        status = daemon.ctl("status")
        self.assertEqual((status["reloads"], status["reload_failures"]), (0, 2))
        self.config.write_text("[Daemon]\nFastTickSec=50ms\nMaxTasks=1000\nReservedCPUs=0\n")
        daemon.ctl_run("reload").check_returncode()
        status = daemon.ctl("status")
        self.assertEqual((status["reloads"], status["fast_tick_setting_usec"]), (1, 50000))
        daemon.stop()

    def test_pauses_survive_a_reload(self):
        daemon = self.daemon("--dry-run").ready()
        daemon.ctl_run("pause", "50-one").check_returncode()
        self.config.write_text("[Daemon]\nMaxTasks=777\n")  # creates World and Probe anew
        self.write_policy("40-new", mark="other")
        daemon.ctl_run("reload").check_returncode()
        self.assertEqual({w["name"]: w["paused"] for w in daemon.ctl("workloads")},
                         {"40-new": False, "50-one": True})
        daemon.stop()

    def test_a_resumed_workload_is_not_paused_by_a_reload(self):
        daemon = self.daemon("--dry-run").ready()
        daemon.ctl_run("pause", "--all").check_returncode()
        daemon.ctl_run("resume", "50-one").check_returncode()
        for config in ("", "[Daemon]\nMaxTasks=777\n"):  # the second creates World and Probe anew
            self.config.write_text(config)
            self.write_policy("40-new", mark="other")
            daemon.ctl_run("reload").check_returncode()
            self.assertEqual({w["name"]: w["paused"] for w in daemon.ctl("workloads")},
                             {"40-new": True, "50-one": False})
        daemon.stop()


class Rights(lib.DaemonTest):
    """Everyone may read, not everyone may change."""

    def test_others_may_only_read(self):
        lib.need_root()
        lib.need_program("setpriv")
        daemon = self.daemon("--dry-run").ready()
        other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if subprocess.run([*other, lib.CTL, "--version"], capture_output=True, check=False).returncode != 0:
            self.skipTest("the build directory cannot be entered by other users")

        def ctl(*args):
            return subprocess.run([*other, lib.CTL, f"--socket={self.runtime}/bus", *args], capture_output=True,
                                  text=True, timeout=lib.DEADLINE_SEC, check=False)

        self.assertEqual(ctl("status").returncode, 0)
        for args in (("pause", "--all"), ("resume", "--all"), ("release", "--all"), ("reload",)):
            run = ctl(*args)
            self.assertNotEqual(run.returncode, 0, args)
            self.assertIn("may only read", run.stderr)
        self.assertEqual(daemon.ctl("status")["state"], "running")
        daemon.stop()


class Observe(lib.DaemonTest):
    """Act=observe: actions are decided and reported but not done, and they are what acting then does."""

    def test_would(self):
        lib.need_placing()
        self.write_policy(Workload={"Act": "observe"})
        workload = self.spinner("--asleep", "--threads=2")
        daemon = self.daemon().ready()
        would = lib.wait_until("what would be done", lambda: daemon.ctl("explain", str(workload.pid)).get("would"))
        explanation = daemon.ctl("explain", str(workload.pid))
        self.assertEqual((explanation["verdict"], explanation["observed"], explanation["actions"]), ("observe", True, []))
        self.assertEqual((explanation["home"], explanation["would_home_nodes"]), ("", "0"))
        self.assertEqual([(move["kind"], move["outcome"], move["from"], move["to"], move["mechanism"]) for move in would],
                         [("set-home", "would", self.full, explanation["would_home"], 3)])
        shown = daemon.ctl("show", "50-test")
        self.assertEqual((shown["would_home_nodes"], shown["groups"][0]["would_home"]), ("0", explanation["would_home"]))
        self.assertIn(f"({explanation['would_home']})", daemon.ctl_run("workloads").stdout)
        self.assertIn(f"Would be: CPUs {explanation['would_home']} on nodes 0", daemon.ctl_run("explain", str(workload.pid)).stdout)
        self.assertIn(": would.", daemon.ctl_run("moves").stdout)
        self.assertEqual(workload.masks(), {self.full})
        self.assertEqual(daemon.ctl("status")["outcomes"]["would"], 1)

        # Nothing is placed, so it looks rarely, and costs little.
        self.assertEqual([daemon.ctl("status")[key] for key in ("watches", "max_cpu_permille")], [True, 1])

        dirs = f"--policy-dir={self.policies}"
        wrote = daemon.ctl("enable", "50-test", dirs)
        self.assertEqual([(file["policy"], file["done"]) for file in wrote], [("50-test", "written")])
        self.assertEqual(self.wait_home(daemon, workload), {explanation["would_home"]})
        self.assertFalse(daemon.ctl("status")["watches"])
        explanation = daemon.ctl("explain", str(workload.pid))
        self.assertEqual((explanation["verdict"], explanation["observed"], explanation["would_home"]), ("managed", False, ""))
        self.assertEqual([file["done"] for file in daemon.ctl("disable", "50-test", dirs)], ["removed"])
        lib.wait_until("everything to be put back", lambda: workload.masks() == {self.full})
        self.assertEqual(daemon.ctl("explain", str(workload.pid))["verdict"], "observe")
        daemon.stop()
        self.assertEqual(workload.masks(), {self.full})


if __name__ == "__main__":
    lib.main()
