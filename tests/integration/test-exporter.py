#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""numaplace-exporter: the metrics over HTTP and Varlink, also beside clients that are slow, huge, or talk nonsense; and that the
dashboard and the alert rules name metrics there are."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import unittest

import lib

EXPORTER = os.environ.get("NUMAPLACE_EXPORTER", "")
MONITORING = lib.SOURCE / "packaging" / "monitoring"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@unittest.skipUnless(EXPORTER, "built without libmicrohttpd")
class Exporter(lib.DaemonTest):
    def start(self, *args, **popen):
        child = subprocess.Popen([EXPORTER, *args], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **popen)
        self.addCleanup(child.stderr.close)
        self.addCleanup(child.wait)
        self.addCleanup(lambda: child.poll() is None and child.kill())
        return child

    def serve(self):
        self.port = free_port()
        child = self.start(f"--listen=127.0.0.1:{self.port}", f"--socket={self.runtime}/bus")

        def listens():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return True
            return child.poll() is not None

        lib.wait_until("it to listen", listens)
        return child

    def get(self, path="/metrics", method="GET", body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=lib.DEADLINE_SEC)
        with contextlib.closing(connection):
            connection.request(method, path, body)
            answer = connection.getresponse()
            return answer.status, answer.getheader("Content-Type"), answer.read().decode()

    def dial(self, source="127.0.0.2"):
        """From another address than the well-behaved clients."""
        client = socket.create_connection(("127.0.0.1", self.port), source_address=(source, 0), timeout=lib.DEADLINE_SEC)
        self.addCleanup(client.close)
        return client

    def test_metrics(self):
        self.write_policy()
        daemon = self.daemon("--dry-run").ready()
        child = self.serve()
        status, kind, text = self.get()
        self.assertEqual((status, kind.split(";")[0]), (200, "application/openmetrics-text"))
        self.assertTrue(text.endswith("# EOF\n"))
        self.assertIn("\nnumaplace_info{", text)

        names = set(re.findall(r"^(numaplace_\w+)", text, re.MULTILINE))
        known = names | {"numaplace_workload_memory_bytes"}  # real nodes only
        for file in ("grafana.json", "alerts.yml"):
            used = set(re.findall(r"numaplace_\w+", (MONITORING / file).read_text(encoding="utf-8")))
            self.assertTrue(used)
            self.assertEqual(used - known, set(), file)
        json.loads((MONITORING / "grafana.json").read_text(encoding="utf-8"))
        if lib.PROMTOOL:
            subprocess.run([lib.PROMTOOL, "check", "rules", str(MONITORING / "alerts.yml")], check=True, capture_output=True)

        self.assertEqual(self.get("/")[0], 200)
        self.assertEqual(self.get("/etc/passwd")[0], 404)
        self.assertEqual(self.get(method="HEAD")[0::2], (200, ""))
        self.assertEqual(self.get(method="DELETE")[0], 405)
        self.assertEqual(self.get(method="POST", body="x" * 100)[0], 405)

        daemon.stop()
        lib.wait_until("the answer to be too old", lambda: self.get()[0] == 503)
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(lib.DEADLINE_SEC), 0)
        # Under its own name.
        self.assertRegex(child.stderr.read(), r"\A(numaplace-exporter: .*\n)+\Z")

    def test_bad_clients(self):
        self.write_policy()
        self.daemon("--dry-run").ready()
        child = self.serve()
        # That many silent connections: some are refused, and other clients are served.
        silent = [self.dial() for _ in range(40)]
        self.assertEqual(self.get()[0], 200)
        # Half a request; a line, a head and a body without an end; nonsense.
        self.dial("127.0.0.3").sendall(b"GET /metrics HT")
        for start, part in ((b"GET /", b"a" * 65536), (b"GET /metrics HTTP/1.1\r\n", b"X: " + b"b" * 8000 + b"\r\n"),
                            (b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n", b"c" * 65536)):
            client = self.dial("127.0.0.4")
            with contextlib.suppress(OSError):
                client.sendall(start)
                for _ in range(200):
                    client.sendall(part)
            self.assertEqual(self.get()[0], 200)
        for nonsense in (b"\0" * 100, b"\x16\x03\x01\x02\x00\x01", b"GET\r\n\r\n", b"GET /metrics HTTP/9.9\r\n\r\n", b"\xff\xfe" * 500):
            client = self.dial("127.0.0.5")
            with contextlib.suppress(OSError):
                client.sendall(nonsense)
                client.shutdown(socket.SHUT_WR)
                client.recv(65536)
            self.assertEqual(self.get()[0], 200)
        self.assertIsNone(child.poll())
        # They are disconnected.
        self.assertEqual(silent[0].recv(1), b"")
        status = pathlib.Path(f"/proc/{child.pid}/status").read_text(encoding="ascii")
        rss = int(re.search(r"VmRSS:\s+(\d+)", status).group(1))
        self.assertLess(rss, 64 << 10)

    def test_activated_again(self):
        """A socket that another program holds, as systemd does, is unharmed when the exporter ends."""
        self.write_policy()
        self.daemon("--dry-run").ready()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port = listener.getsockname()[1]
            for _ in range(2):
                child = self.start(f"--socket={self.runtime}/bus", pass_fds=[3], preexec_fn=lambda: (
                    os.dup2(listener.fileno(), 3), os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))), env=None)
                self.assertEqual(self.get()[0], 200)
                child.send_signal(signal.SIGTERM)
                self.assertEqual(child.wait(lib.DEADLINE_SEC), 0)

    def test_several_sockets(self):
        """It serves one; clients of another would be accepted by the kernel and wait for ever."""
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            child = self.start(pass_fds=[3, 4], preexec_fn=lambda: (
                [os.dup2(fd, fd + 10) for fd in (one.fileno(), other.fileno())],
                os.dup2(one.fileno() + 10, 3), os.dup2(other.fileno() + 10, 4),
                os.environ.update(LISTEN_FDS="2", LISTEN_PID=str(os.getpid()))), env=None)
            self.assertEqual(child.wait(lib.DEADLINE_SEC), 1)
        self.assertIn("2 sockets from systemd: expected one ListenStream=", child.stderr.read())

    def varlink(self):
        """A connection to an exporter that was given the other end of it, as by systemd."""
        ours, theirs = socket.socketpair()
        ours.settimeout(lib.DEADLINE_SEC)
        self.addCleanup(ours.close)
        with theirs:
            child = self.start(f"--socket={self.runtime}/bus", pass_fds=[3], preexec_fn=lambda: (
                os.dup2(theirs.fileno(), 3), os.environ.update(LISTEN_FDS="1", LISTEN_PID=str(os.getpid()))))
        return ours, child

    def call(self, client, method, **more):
        """The replies to a call."""
        client.sendall(json.dumps({"method": method, **more}).encode() + b"\0")
        return self.replies(client)

    @staticmethod
    def replies(client):
        text, replies = b"", []
        while not replies or replies[-1].get("continues"):
            part = client.recv(65536)
            if not part:
                raise AssertionError("it ended within a reply")
            *whole, text = (text + part).split(b"\0")
            replies += [json.loads(message) for message in whole]
        return replies

    def test_varlink(self):
        self.write_policy()
        self.daemon("--dry-run").ready()
        client, child = self.varlink()
        listed = [reply["parameters"] for reply in self.call(client, "io.systemd.Metrics.List", more=True)]
        described = {reply["parameters"]["name"]: reply["parameters"] for reply in
                     self.call(client, "io.systemd.Metrics.Describe", parameters={}, more=True)}
        # As systemd-report requires: the name of the socket, and a field name.
        for name in described:
            self.assertRegex(name, r"^org\.numaplace1\.[A-Za-z][A-Za-z0-9]*$")
        self.assertEqual({metric["name"] for metric in listed} - set(described), set())
        self.assertEqual({family["type"] for family in described.values()}, {"counter", "gauge"})
        self.assertEqual([(metric["value"], set(metric)) for metric in listed if metric["name"] == "org.numaplace1.Cpus"],
                         [(os.cpu_count(), {"name", "value"})])
        of_workloads = [metric["object"] for metric in listed if metric["name"] == "org.numaplace1.WorkloadProcesses"]
        self.assertIn("50-test", of_workloads)
        info = self.call(client, "org.varlink.service.GetInfo")[0]["parameters"]
        self.assertEqual(info["interfaces"], ["io.systemd.Metrics", "org.varlink.service"])
        for interface in info["interfaces"]:
            text = self.call(client, "org.varlink.service.GetInterfaceDescription",
                             parameters={"interface": interface})[0]["parameters"]["description"]
            self.assertTrue(text.startswith(f"interface {interface}\n"))

        for method, parameters, error in (("io.systemd.Metrics.List", {}, "org.varlink.service.ExpectedMore"),
                                          ("io.systemd.Metrics.Frob", {}, "org.varlink.service.MethodNotFound"),
                                          ("org.varlink.service.GetInterfaceDescription", {"interface": "a.b"},
                                           "org.varlink.service.InterfaceNotFound")):
            self.assertEqual(self.call(client, method, parameters=parameters)[0]["error"], error)
        # Calls without a reply get none, and calls may be pipelined.
        quiet, ask = ({"method": "org.varlink.service.GetInfo", **more} for more in ({"oneway": True}, {}))
        client.sendall(b"".join(json.dumps(call).encode() + b"\0" for call in (quiet, ask)))
        self.assertEqual(self.replies(client)[0]["parameters"], info)
        client.shutdown(socket.SHUT_WR)
        self.assertEqual(client.recv(1), b"")
        self.assertEqual(child.wait(lib.DEADLINE_SEC), 0)

    def test_varlink_bad_clients(self):
        """They are left, without any other effect, also when there is no daemon."""
        for nonsense in (b"GET / HTTP/1.1\r\n\r\n\0", b"[]\0", b"{}\0", b'{"method":\0', b"\0", b"[" * 5000 + b"\0", b"x" * 16384, b"{"):
            client, child = self.varlink()
            client.sendall(nonsense)
            if nonsense == b"{":
                client.shutdown(socket.SHUT_WR)
            self.assertEqual(client.recv(1), b"", nonsense)
            self.assertEqual(child.wait(lib.DEADLINE_SEC), 1, nonsense)
        client, child = self.varlink()
        self.assertEqual(self.call(client, "io.systemd.Metrics.List", more=True)[0]["error"], "io.systemd.Metrics.NoSuchMetric")
        # Silent: the other side ends the connection.
        self.assertEqual(client.recv(1), b"")
        self.assertEqual(child.wait(lib.DEADLINE_SEC), 1)

    def test_command_line(self):
        for args, status, says in ((["--listen=nowhere"], 2, "--listen=nowhere"), (["--listen=127.0.0.1:99999"], 2, "--listen="),
                                   (["--bogus"], 2, "--bogus"), (["more"], 2, "more"), (["--listen"], 2, "--listen"),
                                   (["--listen=192.0.2.1:1"], 1, "cannot listen")):
            child = self.start(*args)
            self.assertEqual(child.wait(lib.DEADLINE_SEC), status, args)
            said = child.stderr.read()
            self.assertEqual(said.count("\n"), 1, said)
            self.assertIn(says, said)

    def test_full_device(self):
        with open("/dev/full", "wb") as full:
            for option in ("--help", "--version"):
                child = self.start(option, stdout=full)
                self.assertEqual(child.wait(lib.DEADLINE_SEC), 1)
                self.assertIn("cannot write to standard output: No space left on device", child.stderr.read())


if __name__ == "__main__":
    lib.main()
