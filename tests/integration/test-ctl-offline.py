#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""numaplacectl without a daemon: topology, the policy verbs, usage, and the ways its output can end."""

import fcntl
import json
import os
import pty
import shutil
import signal
import socket
import struct
import subprocess
import sys
import termios
import unittest

import ctllib
import terminal
from lib import CTL, DEADLINE_SEC, SOURCE, need_program, need_root

TOPO = SOURCE / "tests/fixtures/topo"


class Usage(ctllib.CtlTest):
    def test_errors(self):
        for args, says in {
            (): "expected a verb",
            ("frobnicate",): "frobnicate is not a verb",
            ("policy",): "expected list, cat, verify or match",
            ("policy", "frobnicate"): "expected list, cat, verify or match",
            ("--frobnicate",): "--frobnicate is not an option.",
            ("--frobnicate=1",): "--frobnicate=1 is not an option.",
            ("--no", "status"): "--no is ambiguous.",
            ("--no-p=1", "status"): "--no-p=1 takes no argument.",
            ("status", "-z"): "-z is not an option",
            ("status", "--json"): "--json needs an argument",
            ("status", "--json=xml"): "expected pretty, short or off",
            ("status", "--socket="): "--socket= is empty: expected PATH",
            ("--policy-dir", "", "policy", "list"): "--policy-dir= is empty",
            ("metrics", "--output="): "--output= is empty",
            ("moves", "-n", ""): "--lines=: expected a number",
            ("policy", "match", ""): "expected a PID or a command",
            ("status", "extra"): "status takes no arguments",
            ("show",): "show takes WORKLOAD",
            ("show", "a", "b"): "show takes WORKLOAD",
            ("status", "--follow"): "--follow is not for status",
            ("status", "--xml=x"): "--xml is not for status",
            ("policy", "list", "--effective"): "--effective is not for policy list",
            ("moves", "--lines=ten"): "--lines=ten: expected a number",
            ("moves", "-n", "-1"): "expected a number",
            ("topology", "--rehearse=99999999999"): "expected a number",
            ("topology", "--rehearse=0"): "expected a number of nodes, 2 or more",
            ("topology", "--xml=a", "--synthetic=b"): "exclude each other",
            ("pause",): "either names or --all",
            ("pause", "a", "--all"): "either names or --all",
            ("policy", "match"): "takes PID|COMMAND",
            ("policy", "verify", "--policy-dir=/x", "/y"): "either files or --policy-dir=",
            ("policy", "match", "0"): "expected a PID",
            ("policy", "match", "99999999999"): "expected a PID",
            ("diagnose", "0"): "expected a PID",
            ("policy", "list", *(f"--policy-dir={i}" for i in range(9))): "can be given at most 8 times",
        }.items():
            with self.subTest(args=args):
                self.fails(*args, code=2, says=says)

    def test_errors_in_json(self):
        for args, status in ((("--json=short", "frobnicate"), 2), (("policy", "cat", "\x1b\x7fx", "--json=pretty"), 4),
                             (("--json=short", "--socket=/nonexistent", "status"), 3),
                             (("--json=short", "metrics", "--output=/nonexistent/x"), 2),
                             (("--json=short", "diagnose", "--print-policy", "1"), 2),
                             (("--frobnicate", "--json=short"), 2), (("moves", "--lines=x", "-z", "--json", "pretty"), 2),
                             (("--lines=x", "run", "--json=short", "true"), 125), (("status", "--json=xml", "--json=short"), 2)):
            with self.subTest(args=args):
                done = ctllib.run(*args)
                error = [json.loads(line) for line in done.stderr.splitlines()][-1]
                self.assertEqual((done.returncode, error["exit"]), (status, status))
                self.assertTrue(error["error"])
                self.assertTrue(done.stderr.replace("\n", "").isprintable(), done.stderr)

    def test_errors_not_in_json(self):
        """Of several --json= the last counts, and one that is not ours does not count."""
        for args in (("--frobnicate", "--json=short", "--json=off"), ("--lines=x", "pause", "--", "--json=short"),
                     ("--lines=x", "policy", "match", "--", "true", "--json=short"), ("--lines=x", "--socket", "--json=short")):
            self.fails(*args, code=2, says="expected a number" if "--lines=x" in args else "--frobnicate is not an option")

    def test_socket_that_cannot_be(self):
        self.fails(f"--socket=/{'x' * 107}", "status", code=1, says="at most 107 bytes")
        self.fails(f"--socket=/{'x' * 106}", "status", code=3, says="Is numaplaced running?")

    def test_foreign_proc(self):
        """Masks of PIDs that mean other processes, or none, are no reason to call a busy process idle."""
        need_root()
        need_program("unshare")
        self.fails("diagnose", str(os.getpid()), code=1, says="/proc shows another PID namespace",
                   wrap=["unshare", "--pid", "--fork", "--kill-child"])

    def test_usage_error_is_printable(self):
        self.fails("\033[31m\n", code=2, says="\\x1b[31m\\n is not a verb")

    def test_help_and_version(self):
        self.assertIn("usage: numaplacectl", self.ctl("--help"))
        self.assertEqual(self.ctl("-h"), self.ctl("--help"))
        self.assertRegex(self.ctl("--version"), r"^numaplacectl \d+\.\d+\.\d+\n$")


class NoDaemon(ctllib.CtlTest):
    def test_no_socket(self):
        path = self.directory() / "bus"
        for verb in (["status"], ["workloads"], ["show", "a"], ["tasks", "a"], ["explain", "1"], ["moves"],
                     ["moves", "-f"], ["pause", "a"], ["resume", "--all"], ["release", "1"], ["reload"]):
            with self.subTest(verb=verb):
                self.fails(f"--socket={path}", *verb, code=3,
                           says=f"cannot connect to numaplaced at {path}: No such file or directory. "
                                "Is numaplaced running?")

    def test_nobody_listens(self):
        path = self.directory() / "bus"
        with socket.socket(socket.AF_UNIX) as left_behind:
            left_behind.bind(str(path))
        self.fails(f"--socket={path}", "status", code=3, says="Connection refused. Is numaplaced running?")

    def test_strange_path(self):
        path = self.directory() / "a b;c=d,e%20\u00fc"
        self.fails(f"--socket={path}", "status", code=3, says="No such file or directory",
                   env={"LC_ALL": "C.UTF-8"})

    def test_daemon_hangs_up(self):
        path = self.directory() / "bus"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            with subprocess.Popen([CTL, f"--socket={path}", "status"], stderr=subprocess.PIPE, text=True) as ctl:
                server.accept()[0].close()
                self.assertIn("numaplaced closed the connection", ctl.stderr.read())
        self.assertEqual(ctl.returncode, 3)

    def test_somebody_else_listens(self):
        path = self.directory() / "bus"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            with subprocess.Popen([CTL, f"--socket={path}", "status"], stderr=subprocess.PIPE, text=True) as ctl:
                with server.accept()[0] as client:
                    client.sendall(b"220 mail.example.org ESMTP\r\n" * 3)
                    self.assertIn(f"what listens at {path} is not numaplaced", ctl.stderr.read())
        self.assertEqual(ctl.returncode, 1)


class Topology(ctllib.CtlTest):
    def test_goldens(self):
        goldens = sorted(TOPO.glob("*.golden"))
        self.assertGreaterEqual(len(goldens), 14)
        for golden in goldens:
            with self.subTest(golden=golden.name):
                name, rehearse = golden.stem, []
                if "-rehearse-" in name:
                    name, n = name.split("-rehearse-")
                    rehearse = [f"--rehearse={n}"]
                xml, synthetic = TOPO / f"{name}.xml", TOPO / f"{name}.synthetic"
                machine = (f"--xml={xml}" if xml.exists()
                           else f"--synthetic={synthetic.read_text(encoding='ascii').strip()}")
                expected = golden.read_text(encoding="utf-8")
                self.assertEqual(self.ctl("topology", machine, *rehearse), expected)
                value = self.ctl_json("topology", machine, *rehearse)
                self.assertEqual(value["text"], expected)
                self.assertEqual(len(value["nodes"]), value["n_nodes"])
                self.assertEqual(len(value["distances"]), value["n_nodes"] ** 2)
                self.assertEqual(len(value["llcs"]), value["n_llcs"])
                self.assertEqual(sum(node["n_cpus"] for node in value["nodes"]), value["n_cpus"])

    def test_live(self):
        value = self.ctl_json("topology")
        self.assertEqual(value["origin"], "live")
        self.assertLessEqual(value["n_cpus"], os.cpu_count())
        self.assertGreaterEqual(self.ctl_json("topology", "--whole-machine")["n_cpus"], value["n_cpus"])

    def test_bad_input(self):
        path = self.directory() / "bad.xml"
        path.write_text("<topology>", encoding="ascii")
        self.fails("topology", f"--xml={path}", code=1, says="topology: ")
        self.fails("topology", "--xml=/nonexistent", code=1, says="/nonexistent cannot be read")
        self.fails("topology", "--synthetic=nonsense", code=1, says="topology: ")
        self.fails("topology", "--synthetic=numa:2\n\033[31mpu:x", code=1, says="numa:2\\n\\x1b[31mpu:x")
        self.fails("topology", "--synthetic=numa:1 pu:2", "--rehearse=3", code=1, says="topology: ")


class Policies(ctllib.CtlTest):
    def setUp(self):
        self.dir = self.directory()
        (self.dir / "10-app.policy").write_text(
            "[Match]\nComm=other\n\n[Match]\nComm=app\nMinThreads=1\n\n"
            "[Workload]\nDescription=An app\n\n[Placement]\nMode=fixed\nNodes=0\n", encoding="ascii")
        (self.dir / "90-default.policy").write_text("[Match]\nComm=*\n\n[Placement]\nMode=none\n", encoding="ascii")
        self.at = f"--policy-dir={self.dir}"

    def add_dropin(self, text):
        dropins = self.dir / "10-app.policy.d"
        dropins.mkdir()
        (dropins / "x.conf").write_text(text, encoding="ascii")

    def test_list(self):
        lines = self.ctl("policy", "list", self.at).splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["POLICY", "10-app", "90-default"])
        self.assertEqual(self.ctl("policy", "list", self.at, "--no-legend").count("\n"), 2)
        app, default = self.ctl_json("policy", "list", self.at)
        self.assertEqual((app["name"], app["mode"], app["matches"], app["description"]),
                         ("10-app", "fixed", 2, "An app"))
        self.assertEqual(default["mode"], "none")

    def test_no_directory(self):
        for verb in ("list", "match", "cat"):
            done = ctllib.run("policy", verb, "--policy-dir=/nonexistent", *(["1"] if verb == "match" else []))
            self.assertEqual((done.returncode, done.stderr.count("\n")), (0, 1), done)
            self.assertIn("/nonexistent: there is no such directory", done.stderr)
        done = ctllib.run("--json=short", "policy", "list", "--policy-dir=/nonexistent")
        self.assertEqual((done.returncode, done.stdout), (0, "[]\n"))
        self.assertEqual(json.loads(done.stderr)["exit"], 0)
        out = self.ctl("policy", "verify", "--policy-dir=/nonexistent")
        self.assertTrue(out.endswith("\n0 files, 0 errors, 1 warning\n"), out)

    def test_list_with_errors(self):
        (self.dir / "50-bad.policy").write_text("[Placement]\nMode=sideways\n", encoding="ascii")
        done = ctllib.run("policy", "list", self.at)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("50-bad.policy:2: ", done.stderr)
        self.assertIn("policy verify", done.stderr)

    def test_cat(self):
        self.add_dropin("[Steal]\nSteal=no\n")
        app = (self.dir / "10-app.policy").read_text(encoding="ascii")
        expected = f"# {self.dir}/10-app.policy\n{app}\n# {self.dir}/10-app.policy.d/x.conf\n[Steal]\nSteal=no\n"
        self.assertEqual(self.ctl("policy", "cat", "10-app", self.at), expected)
        self.assertEqual(self.ctl("policy", "cat", "10-app.policy", self.at), expected)
        self.assertTrue(self.ctl("policy", "cat", self.at).startswith(expected + "\n# "))
        policy, = self.ctl_json("policy", "cat", "10-app", self.at)
        self.assertEqual(policy["name"], "10-app")
        self.assertEqual(policy["files"][0], {"path": f"{self.dir}/10-app.policy", "text": app})
        self.fails("policy", "cat", "nosuch", self.at, code=4, says="no policy is named nosuch")

    def test_cat_beside_what_cannot_be_read(self):
        """It shows what exists, and names what does not."""
        (self.dir / "05-nowhere.policy").symlink_to("/nonexistent")
        (self.dir / "06-directory.policy").mkdir()
        done = ctllib.run("policy", "cat", self.at, "06-directory", "10-app", "nosuch")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"# {self.dir}/10-app.policy\n", done.stdout)
        for says in ("05-nowhere.policy: cannot be read", "06-directory.policy: Is a directory", "no policy is named nosuch"):
            self.assertIn(says, done.stderr)

    def test_cat_effective_can_be_read_again(self):
        self.add_dropin("[Steal]\nSteal=no\n")
        text = self.ctl("policy", "cat", "10-app", "--effective", self.at)
        self.assertIn("\nSteal=no\n", text)
        self.assertIn("\nMode=fixed\n", text)
        copy = self.directory() / "10-app.policy"
        copy.write_text(text, encoding="utf-8")
        self.ctl("policy", "verify", str(copy))
        self.assertEqual(self.ctl("policy", "cat", "--effective", f"--policy-dir={copy.parent}").splitlines()[1:],
                         text.splitlines()[1:])

    def acts(self, *dirs):
        return {policy["name"]: policy["act"] for policy in self.ctl_json("policy", "list", *dirs)}

    def test_enable_and_disable(self):
        runtime = self.directory()
        dirs = (self.at, f"--policy-dir={runtime}", "--socket=/nonexistent/bus")
        (self.dir / "20-watched.policy").write_text("[Match]\nComm=w\n[Workload]\nAct=observe\n[Placement]\nMode=auto\n",
                                                    encoding="ascii")
        before = sorted(self.dir.rglob("*"))
        dropin = f"{self.dir}/20-watched.policy.d/80-numaplacectl.conf"
        self.assertEqual(self.ctl("enable", "20-watched", *dirs[:2], dirs[2]), f"Wrote {dropin}.\n")
        self.assertEqual(self.acts(*dirs[:2])["20-watched"], "auto")
        self.assertEqual(self.ctl("disable", "--runtime", "20-watched.policy", *dirs),
                         f"Wrote {runtime}/20-watched.policy.d/85-numaplacectl-runtime.conf.\n")
        self.assertEqual(self.acts(*dirs[:2])["20-watched"], "observe")
        self.ctl("enable", "--runtime", "20-watched", *dirs)
        self.assertEqual(self.acts(*dirs[:2])["20-watched"], "auto")
        self.assertEqual(self.ctl("disable", "20-watched", *dirs), f"Removed {dropin}.\n")
        self.assertEqual(self.acts(*dirs[:2])["20-watched"], "observe")
        self.assertEqual(self.ctl("disable", "20-watched", *dirs), "")
        self.assertEqual((sorted(self.dir.rglob("*")), sorted(runtime.rglob("*"))), (before, []))

        # One that acts through its own file, one that never acts, one whose other drop-in is read later.
        self.ctl("disable", "10-app", *dirs)
        self.assertEqual(self.acts(*dirs[:2])["10-app"], "observe")
        self.ctl("enable", "10-app", *dirs)
        self.assertEqual(sorted(self.dir.rglob("*")), before)
        self.fails("enable", "90-default", *dirs, code=1, says="90-default has Mode=none")
        self.fails("enable", "nosuch", *dirs, code=4, says="no policy is named nosuch")
        (self.dir / "20-watched.policy.d").mkdir()
        (self.dir / "20-watched.policy.d" / "99-me.conf").write_text("[Workload]\nAct=observe\n", encoding="ascii")
        self.fails("enable", "20-watched", *dirs, code=1, says="20-watched.policy.d/99-me.conf:2, which is read later")
        self.assertEqual([path.name for path in (self.dir / "20-watched.policy.d").iterdir()], ["99-me.conf"])
        self.fails("enable", "--runtime", "20-watched", self.at, code=2, says="--runtime")

    def test_disable_what_is_overridden(self):
        """It also removes a drop-in that is not in force, which would take effect once the other one is removed."""
        runtime = self.directory()
        dirs = (self.at, f"--policy-dir={runtime}", "--socket=/nonexistent/bus")
        (self.dir / "20-watched.policy").write_text("[Match]\nComm=w\n[Workload]\nAct=observe\n[Placement]\nMode=auto\n",
                                                    encoding="ascii")
        mine = self.dir / "20-watched.policy.d" / "99-mine.conf"
        ours = {(): mine.with_name("80-numaplacectl.conf"),
                ("--runtime",): runtime / "20-watched.policy.d" / "85-numaplacectl-runtime.conf"}
        for args, dropin in ours.items():
            self.ctl("enable", *args, "20-watched", *dirs)
            mine.parent.mkdir(exist_ok=True)
            mine.write_text("[Workload]\nAct=observe\n", encoding="ascii")
            self.assertEqual(self.ctl("disable", *args, "20-watched", *dirs), f"Removed {dropin}.\n")
            self.assertEqual(self.ctl("disable", *args, "20-watched", *dirs), "")
            mine.unlink()
            self.assertEqual(self.acts(*dirs[:2])["20-watched"], "observe")
        # The file that disable has written stays, and a policy that does not act needs none.
        self.ctl("disable", "10-app", *dirs)
        self.assertEqual(self.ctl("disable", "10-app", *dirs), "")
        self.assertEqual(self.ctl("disable", "90-default", *dirs), "")
        self.assertFalse((self.dir / "90-default.policy.d").exists())

    def test_enable_below_a_root(self):
        root = self.directory()
        shipped = root / "usr" / "lib" / "numaplace" / "policy.d"
        shipped.mkdir(parents=True)
        (shipped / "90-default.policy").write_text("[Match]\nMinMemory=1G\n[Workload]\nAct=observe\n[Placement]\nMode=auto\n",
                                                   encoding="ascii")
        done, = json.loads(self.ctl("--json=short", "enable", "90-default", f"--root={root}"))
        self.assertEqual(self.ctl_json("enable", "90-default", f"--root={root}"), [])
        self.assertEqual(done, {"policy": "90-default", "done": "written",
                                "path": f"{root}/etc/numaplace/policy.d/90-default.policy.d/80-numaplacectl.conf"})
        self.assertEqual(self.acts(f"--root={root}")["90-default"], "auto")
        self.ctl("disable", "--runtime", "90-default", f"--root={root}")
        self.assertTrue((root / "run/numaplace/policy.d/90-default.policy.d/85-numaplacectl-runtime.conf").exists())
        self.assertEqual(self.acts(f"--root={root}")["90-default"], "observe")

    def test_verify_good(self):
        self.assertEqual(self.ctl("policy", "verify", self.at), "2 files, 0 errors, 0 warnings\n")
        self.assertEqual(self.ctl("policy", "verify", str(self.dir)), "2 files, 0 errors, 0 warnings\n")
        self.assertEqual(self.ctl("policy", "verify", str(self.dir / "90-default.policy")),
                         "1 file, 0 errors, 0 warnings\n")
        self.assertEqual(self.ctl_json("policy", "verify", self.at),
                         {"messages": [], "files": 2, "errors": 0, "warnings": 0})

    def test_verify_errors_and_warnings(self):
        path = self.dir / "50-bad.policy"
        path.write_text("[Match]\nComm=x\n[Steal]\nSteal=maybe\nFrob=1\n", encoding="ascii")
        out = self.ctl("policy", "verify", self.at, code=1).splitlines()
        self.assertTrue(out[0].startswith(f"{path}:4: "), out)
        self.assertTrue(out[1].startswith(f"{path}:5: "), out)
        self.assertEqual(out[-1], "3 files, 1 error, 1 warning")
        value = self.ctl_json("policy", "verify", self.at, code=1)
        self.assertEqual([(m["severity"], m["line"]) for m in value["messages"]], [("error", 4), ("warning", 5)])

    def test_dangling_link(self):
        """It hides no other file."""
        (self.dir / "20-gone.policy").symlink_to("/nonexistent")
        out = self.ctl("policy", "verify", self.at, code=1).splitlines()
        self.assertEqual(out, [f"{self.dir}/20-gone.policy: cannot be read: No such file or directory", "2 files, 1 error, 0 warnings"])
        (self.dir / "10-app.policy").write_text("[Match]\nComm=x\n[Steal]\nSteal=maybe\n", encoding="ascii")
        out = self.ctl("policy", "verify", self.at, code=1).splitlines()
        self.assertEqual(out[-1], "2 files, 2 errors, 0 warnings")
        self.assertIn("Steal=maybe", ctllib.run("policy", "cat", "10-app", self.at).stdout)
        (self.dir / "60-odd.policy").write_text("[Match]\nUser=nobody-here\n", encoding="ascii")
        (self.dir / "70-empty.policy").touch()
        out = self.ctl("policy", "verify", self.at, code=1)
        self.assertIn("60-odd.policy:2: User=nobody-here: this machine has no user", out)
        self.assertIn("70-empty.policy: neither a [Match] section", out)

    def test_verify_what_is_disabled(self):
        """As in `policy verify *.policy`: this is no error, as in a directory."""
        path = self.dir / "20-masked.policy"
        path.symlink_to("/dev/null")
        self.assertEqual(self.ctl("policy", "verify", self.at), "2 files, 0 errors, 0 warnings\n")
        self.assertEqual(self.ctl("policy", "verify", str(path), str(self.dir / "90-default.policy")),
                         f"{path}: leads to /dev/null, which disables files of its name\n1 file, 0 errors, 1 warning\n")

    def test_verify_users_and_comments(self):
        path = self.dir / "50-odd.policy"
        path.write_text("[Match]\nUser=root\nUser=0\nUser=no*\nUser=!nobody-here\n[Steal]\nSteal=no\n", encoding="ascii")
        out = self.ctl("policy", "verify", str(path)).splitlines()
        self.assertEqual(out, [f"{path}:5: User=nobody-here: this machine has no user of that name", "1 file, 0 errors, 1 warning"])
        self.assertEqual(self.ctl("policy", "verify", str(path), "--synthetic=numa:2 pu:2"), "1 file, 0 errors, 0 warnings\n")
        path.write_text("[Match]\nComm=x\n[Steal]\nSteal=no # never\n", encoding="ascii")
        self.assertIn("not: no # never (comments need a line of their own)", self.ctl("policy", "verify", str(path), code=1))

    def test_match_later(self):
        (self.dir / "05-large.policy").write_text("[Match]\nComm=app\nMinMemory=1G\n", encoding="ascii")
        out = self.ctl("policy", "match", self.at, "app").splitlines()
        self.assertEqual(out[0], "app falls under 10-app (Mode=fixed) now, and perhaps under 05-large when it has grown")

    def test_verify_policies_that_match_nothing(self):
        nothing = "neither a [Match] section that matches anything nor a setting"
        for text, says in {"": nothing, "# nothing yet\n": nothing, "[Match]\nFoo=x\n": nothing, "[Match]\nMinMemory=0\n": nothing,
                           "[Mathc]\nComm=x\n[Steal]\nSteal=no\n": "no [Match] section that matches anything",
                           "[Match]\nComm=[abc\n": "a [ without ] matches itself only"}.items():
            with self.subTest(text=text):
                path = self.dir / "50-odd.policy"
                path.write_text(text, encoding="ascii")
                for where in (self.at, str(path)):
                    out = self.ctl("policy", "verify", where).splitlines()
                    self.assertTrue(out[-2].startswith(f"{path}:") and says in out[-2], out)
                self.assertEqual(ctllib.run("policy", "list", self.at).returncode, 0)
        path.write_text("[Match]\n[Steal]\nSteal=no\n", encoding="ascii")
        self.assertIn("50-odd: no: it has no [Match] section that matches anything",
                      ctllib.run("policy", "match", self.at, "x").stdout)

    def test_verify_counts_dropins(self):
        self.add_dropin("[Steal]\nFrob=1\n")
        self.assertTrue(self.ctl("policy", "verify", self.at).endswith("\n3 files, 0 errors, 1 warning\n"))
        dropin = self.dir / "10-app.policy.d/x.conf"
        self.assertTrue(self.ctl("policy", "verify", str(dropin)).endswith("\n1 file, 0 errors, 1 warning\n"))

    def test_verify_dropin_with_its_policy(self):
        """A drop-in is valid, or not, together with the policy that it adds to."""
        (self.dir / "20-nodes.policy").write_text("[Match]\nComm=x\n[Placement]\nMode=auto\nNodes=0\n", encoding="ascii")
        (self.dir / "30-free.policy").write_text("[Match]\nComm=y\n[Placement]\nMode=auto\n", encoding="ascii")
        good, bad, orphan = (self.dir / f"{name}.policy.d" / "x.conf" for name in ("20-nodes", "30-free", "40-none"))
        for path in (good, bad, orphan):
            path.parent.mkdir()
            path.write_text("[Placement]\nMode=fixed\n", encoding="ascii")
        self.assertEqual(self.ctl("policy", "verify", str(good)), "1 file, 0 errors, 0 warnings\n")
        done = ctllib.run("policy", "verify", "x.conf", cwd=good.parent)
        self.assertEqual(done.stdout, "1 file, 0 errors, 0 warnings\n")
        self.assertIn("1 file, 1 error, 0 warnings\n", self.ctl("policy", "verify", str(bad), code=1))
        self.assertEqual(self.ctl("policy", "verify", str(orphan), code=1).splitlines()[0],
                         f"{orphan}: a drop-in of a policy that does not exist: 40-none.policy")
        # The policy may be in another directory of the daemon.
        root = self.directory()
        shipped, own = root / "usr/lib/numaplace/policy.d", root / "etc/numaplace/policy.d/20-nodes.policy.d"
        shipped.mkdir(parents=True)
        own.mkdir(parents=True)
        shutil.copy(self.dir / "20-nodes.policy", shipped)
        shutil.copy(good, own)
        self.assertEqual(self.ctl("policy", "verify", str(own / "x.conf"), f"--root={root}"),
                         "1 file, 0 errors, 0 warnings\n")

    def test_verify_directory_without_policies(self):
        self.add_dropin("[Steal]\nSteal=no\n")
        for where in (self.directory(), self.dir / "10-app.policy.d"):
            self.assertEqual(self.ctl("policy", "verify", str(where)),
                             f"{where}: there are no policies in it, which are files named *.policy\n"
                             "0 files, 0 errors, 1 warning\n")
        # A policy that cannot be read is one.
        broken = self.directory()
        (broken / "10-app.policy").symlink_to("nosuch")
        self.assertTrue(self.ctl("policy", "verify", str(broken), code=1).endswith("\n0 files, 1 error, 0 warnings\n"))

    def test_verify_constants(self):
        path = self.dir / "20-constant.policy"
        path.write_text("[Match]\nComm=x\n[Steal]\nWaitPermille=200\n[Limits]\nNiceTries=3\n", encoding="ascii")
        out = self.ctl("policy", "verify", str(path)).splitlines()
        self.assertTrue(out[0].startswith(f"{path}:4: ignoring WaitPermille=, which is always 250: "), out)
        self.assertTrue(out[1].startswith(f"{path}:6: ignoring NiceTries=, which is always 2: "), out)
        self.assertEqual(out[2], "1 file, 0 errors, 2 warnings")
        self.assertNotIn("WaitPermille=", ctllib.run("policy", "cat", "--effective", self.at).stdout)

    def test_verify_nodes(self):
        path = self.dir / "20-nodes.policy"
        path.write_text("[Match]\nComm=x\n[Placement]\nMode=fixed\nNodes=1\n", encoding="ascii")
        two = "--synthetic=numa:2 pu:2"
        self.ctl("policy", "verify", str(path), two)
        self.assertIn("20-nodes.policy:", self.ctl("policy", "verify", str(path), "--synthetic=numa:1 pu:2", code=1))
        self.ctl("policy", "verify", str(path), "--synthetic=numa:1 pu:2", "--rehearse=2")

    def test_verify_hostile_files(self):
        cases = {
            "nul": b"[Match]\0\n", "binary": bytes(range(256)) * 16, "no-section": b"Comm=x\n",
            "long-line": b"[Match]\nComm=" + b"x" * 100000 + b"\n", "big": b"# " + b"x" * (10 << 20) + b"\n",
            "escape": b"[\033[31m]\nComm=x\n",
        }
        for name, content in cases.items():
            with self.subTest(name=name):
                path = self.directory() / "x.policy"
                path.write_bytes(content)
                out = self.ctl("policy", "verify", str(path), code=1)
                self.assertIn("x.policy", out)
                self.assertNotRegex(out, r"[\x00-\x09\x0b-\x1f\x7f]")
        loop = self.directory() / "x.policy"
        loop.symlink_to(loop)
        self.assertIn(str(loop), self.ctl("policy", "verify", str(loop), code=1))
        self.assertIn("1 error", self.ctl("policy", "verify", "/nonexistent.policy", code=1))
        fifo = self.directory() / "x.policy"
        os.mkfifo(fifo)
        self.ctl("policy", "verify", str(fifo), code=1)
        done = ctllib.run("policy", "cat", f"--policy-dir={fifo.parent}")
        self.assertIn(done.returncode, (0, 1))  # an empty file or an error, but it does not wait for a writer

    def test_shipped_policies(self):
        for path in sorted((SOURCE / "policies").rglob("*.policy")):
            out = self.ctl("policy", "verify", str(path), "--synthetic=numa:8 pu:8")
            self.assertTrue(out.endswith("1 file, 0 errors, 0 warnings\n"), out)

    def test_match_command(self):
        value = self.ctl_json("policy", "match", self.at, "--", "app", "--serve")
        self.assertEqual((value["policy"], value["comm"], value["command_line"], value["pid"]),
                         ("10-app", "app", "app --serve", 0))
        first, default = value["policies"]
        self.assertEqual((first["verdict"], first["section"]), ("yes", 2))
        self.assertEqual(first["sections"][0]["failed"], [{"key": "Comm", "wanted": "other", "found": "app"}])
        self.assertEqual(default["verdict"], "yes")
        out = self.ctl("policy", "match", self.at, "app")
        self.assertTrue(out.startswith("app falls under 10-app (Mode=fixed)\n"), out)
        self.assertIn("but 10-app comes first", out)

    def test_match_process(self):
        with subprocess.Popen(["sleep", "60"]) as child:
            try:
                value = self.ctl_json("policy", "match", self.at, str(child.pid))
                self.assertEqual((value["policy"], value["comm"], value["uid"]),
                                 ("90-default", "sleep", os.getuid()))
                self.assertEqual(value["exe"], os.readlink(f"/proc/{child.pid}/exe"))
            finally:
                child.kill()
        self.fails("policy", "match", self.at, str(child.pid), code=4, says=f"there is no process {child.pid}")

    def test_match_hostile_name(self):
        rename = ("import ctypes, sys\n"
                  "ctypes.CDLL(None).prctl(15, b'\\033[31m) R 1\\n\\xff', 0, 0, 0)\n"  # PR_SET_NAME
                  "print(flush=True)\n"
                  "sys.stdin.read()")
        with subprocess.Popen([sys.executable, "-c", rename], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
            child.stdout.readline()
            out = self.ctl("policy", "match", self.at, str(child.pid))
            self.assertTrue(out.startswith(f"\\x1b[31m) R 1\\x0a\\xff[{child.pid}] "), out)
            self.assertEqual(self.ctl_json("policy", "match", self.at, str(child.pid))["comm"],
                             "\\x1b[31m) R 1\\x0a\\xff")
            child.stdin.close()

    def test_root(self):
        root = self.directory()
        policies = root / "etc/numaplace/policy.d"
        policies.mkdir(parents=True)
        (policies / "10-a.policy").write_text("[Match]\nComm=*\n[Placement]\nMode=fixed\nNodes=7\n", encoding="ascii")
        self.assertEqual([p["path"] for p in self.ctl_json("policy", "list", f"--root={root}")],
                         [f"{policies}/10-a.policy"])
        # Nodes of another machine are not compared with those of this one.
        self.ctl("policy", "verify", f"--root={root}")
        self.ctl("policy", "verify", f"--root={root}", "--synthetic=numa:2 pu:1", code=1)


class Output(ctllib.CtlTest):
    """Ways in which standard output ends."""

    def run_with_stdout(self, stdout, *args):
        return subprocess.run([CTL, *args], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                              text=True, timeout=DEADLINE_SEC, check=False)

    def test_reader_that_has_seen_enough(self):
        big = "--synthetic=numa:64 pu:32"
        for args in (["--help"], ["topology", big], ["topology", "--json=pretty", big]):
            reader, writer = os.pipe()
            os.close(reader)
            done = self.run_with_stdout(writer, *args)
            os.close(writer)
            self.assertEqual((done.returncode, done.stderr), (0, ""), args)

    def test_empty_arguments(self):
        for args in (["simulate", ""], ["replay", ""], ["top", ""], ["show", ""], ["explain", ""], ["diagnose", ""],
                     ["policy", "cat", ""], ["policy", "verify", ""], ["enable", "x", ""]):
            with self.subTest(args=args):
                self.fails(*args, code=2, says=", not an empty argument")

    def test_full_device(self):
        with open("/dev/full", "wb") as full:
            done = self.run_with_stdout(full, "--help")
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write to standard output: No space left on device", done.stderr)

    def test_closed_stdout(self):
        done = subprocess.run([CTL, "--help"], stderr=subprocess.PIPE, text=True, timeout=DEADLINE_SEC, check=False,
                              preexec_fn=lambda: os.close(1))
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write to standard output: Bad file descriptor", done.stderr)

    def on_terminal(self, *args, columns=0, **env):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        with subprocess.Popen([CTL, *args], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, env={**os.environ, **env}) as child:
            os.close(slave)
            out = b""
            while True:
                try:
                    chunk = os.read(master, 4096)
                except OSError:  # how the end of a terminal shows
                    break
                if not chunk:
                    break
                out += chunk
        os.close(master)
        self.assertEqual(child.returncode, 0)
        return out

    def paged(self, *args, status=0, **env):
        """Everything written to a terminal comes from numaplacectl's own code."""
        without = [word for name in ("SUDO_UID", "DOAS_USER", "PKEXEC_UID", "NUMAPLACE_PAGER", "NUMAPLACE_LESS") for word in ("-u", name)]
        env = {"PAGER": "sed s/^/PAGER:/", "TERM": "xterm", **env}
        argv = ["env", *without, *[f"{name}={value}" for name, value in env.items()], CTL, *args]
        with terminal.Terminal(argv) as screen:
            self.assertEqual(screen.end(), status, screen.text)
            return screen.text

    def test_pager(self):
        at = f"--policy-dir={self.directory()}"
        lines = ("policy", "list", at)
        self.assertIn("PAGER:", self.paged(*lines))
        self.assertIn("OWN:", self.paged(*lines, NUMAPLACE_PAGER="sed s/^/OWN:/"))
        self.assertIn("\033[", self.paged(*lines, NO_COLOR=""))
        for env in ({"NUMAPLACE_PAGER": ""}, {"NUMAPLACE_PAGER": "cat"}, {"PAGER": ""}, {"TERM": "dumb"}):
            with self.subTest(env=env):
                text = self.paged(*lines, **env)
                self.assertNotIn("PAGER:", text)
                self.assertIn("POLICY", text)
        for args in ((*lines, "--no-pager"), (*lines, "--json=short"), ("--help",)):
            with self.subTest(args=args):
                self.assertNotIn("PAGER:", self.paged(*args))

    def test_pager_as_somebody_else(self):
        """A user who may do this as another user must not get a shell by it."""
        for name in ("SUDO_UID", "DOAS_USER", "PKEXEC_UID"):
            text = self.paged("policy", "list", f"--policy-dir={self.directory()}", **{name: "1000"})
            self.assertNotIn("PAGER:", text)
            self.assertIn("POLICY", text)

    def test_pager_that_ends(self):
        """A reader that has seen enough is no failure; a failure still is."""
        at = f"--policy-dir={self.directory()}"
        self.assertNotIn("numaplacectl:", self.paged("policy", "list", at, PAGER="true"))
        self.assertIn("PAGER:", self.paged("policy", "match", at, "--", "nosuch-command"))
        # Messages are part of its output.
        self.assertIn("PAGER:numaplacectl:", self.paged("policy", "cat", "nosuch", at, status=4))
        text = self.paged("policy", "list", at, PAGER="nosuch-pager", status=1)
        self.assertIn("the pager cannot be run (--no-pager does without): nosuch-pager", text)

    def test_colour(self):
        at = f"--policy-dir={self.directory()}"
        self.assertIn(b"\033[", self.on_terminal("policy", "list", at, TERM="xterm", NO_COLOR=""))
        self.assertNotIn(b"\033[", self.on_terminal("policy", "list", at, TERM="xterm", NO_COLOR="1"))
        self.assertNotIn(b"\033[", self.on_terminal("policy", "list", at, TERM="dumb", NO_COLOR=""))
        self.assertNotIn("\033[", self.ctl("policy", "list", at))

    def test_tables_fit_a_terminal(self):
        directory = self.directory()
        (directory / "10-x.policy").write_text(
            "[Workload]\nDescription=" + "a long text " * 20 + "\n[Match]\nComm=x\n", encoding="ascii")
        args = ("policy", "list", f"--policy-dir={directory}")
        whole = self.ctl(*args, env={"COLUMNS": "40"})
        self.assertGreater(len(whole.splitlines()[1]), 240)
        self.assertNotIn("do not fit", whole)

        def width(columns, **env):
            shown = self.on_terminal(*args, columns=columns, TERM="dumb", **env).decode().splitlines()
            self.assertEqual(shown[1].split()[0], "10-x")
            self.assertEqual(["columns that do not fit" in line for line in shown], [False, False] + [True] * (len(shown) - 2))
            return max(len(line) for line in shown)

        self.assertEqual(width(120, COLUMNS=""), 120)
        self.assertEqual(width(120, COLUMNS="100"), 100)
        self.assertEqual(width(0, COLUMNS="100"), 100)
        self.assertEqual(width(100, COLUMNS="0"), 100)
        self.assertEqual(width(100, COLUMNS="-1"), 100)
        self.assertEqual(width(100, COLUMNS="4000000000"), 100)
        self.assertEqual(width(1000, COLUMNS=""), len(whole.splitlines()[1]))
        self.assertLessEqual(width(30, COLUMNS=""), 30)

    def test_cat_on_a_terminal_is_printable(self):
        directory = self.directory()
        (directory / "10-x.policy").write_bytes(b"# \033]0;owned\007\n[Match]\nComm=x\n")
        self.assertNotIn(b"\033]", self.on_terminal("policy", "cat", f"--policy-dir={directory}", TERM="xterm"))


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and children would inherit that
    unittest.main()
