#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Excessive clients of the private socket: whatever they do, processes are found and placed, and well-behaved clients
are answered."""

import json
import os
import socket
import subprocess

import lib

STORM = os.environ["NUMAPLACE_BUS_STORM"]

# A storm of 20,000 calls a second gets 4,000 answers between two ticks that are 200 ms apart (SlowTickSec= of these
# tests), and fewer if the daemon gets less of a CPU. With twice as many, clients come before ticks.
REPLIES_PER_TICK = 8000

AUTH = b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\nBEGIN\r\n"
# Of a call of Ping: the path, and the name of the method.
FIELDS = b"\1\1o\0\x0f\0\0\0/org/numaplace1\0\3\1s\0\4\0\0\0Ping\0"


def ping(serial=1):
    """Little endian, method call, a body of 0 bytes."""
    numbers = b"".join(number.to_bytes(4, "little") for number in (0, serial, len(FIELDS)))
    return b"l\1\0\1" + numbers + FIELDS + b"\0" * (-len(FIELDS) % 8)


PING = ping()


class Storm(lib.DaemonTest):
    def setUp(self):
        lib.need_placing()
        super().setUp()
        self.write_policy()
        self.running = self.daemon().ready()
        self.before = self.running.ctl("status")

    def open(self):
        client = socket.socket(socket.AF_UNIX)
        self.addCleanup(client.close)
        client.connect(str(self.running.runtime / "bus"))
        return client

    def authenticated(self):
        client = self.open()
        client.settimeout(lib.DEADLINE_SEC)
        client.sendall(AUTH)
        self.assertTrue(client.recv(4096).startswith(b"OK "))
        return client

    def hung_up(self, client):
        try:
            while client.recv(4096):
                pass
        except ConnectionResetError:
            pass

    def status(self, key):
        return self.running.ctl("status")[key]

    def placing_goes_on(self):
        """A new process is found and placed."""
        workload = self.spinner()
        self.wait_home(self.running, workload)
        workload.end()

    def all_gone(self):
        def alone():
            run = self.running.ctl_run("--json=short", "status")
            # The checking client counts, too, and is rejected as long as there are too many.
            return run.returncode == 0 and json.loads(run.stdout)["clients"] == 1

        lib.wait_until("the last client to be gone", alone)

    def storm(self, clients, calls, seconds):
        storm = subprocess.Popen([STORM, str(clients), str(calls), str(seconds), f"unix:path={self.running.runtime}/bus"],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        self.addCleanup(storm.stdout.close)
        self.addCleanup(storm.wait)
        self.addCleanup(storm.kill)
        return storm

    def test_all_are_told(self):
        """Each client gets the same signal about a move."""
        clients = [self.authenticated() for _ in range(20)]
        workload = self.spinner()
        self.wait_home(self.running, workload)
        told = set()
        for client in clients:
            said = b""
            while b"set-home" not in said or b"Moved" not in said:
                more = client.recv(65536)
                self.assertTrue(more, "hung up")
                said += more
            told.add(said[said.index(b"Moved"):said.index(b"set-home")])
        self.assertEqual(len(told), 1)
        self.running.stop()

    def test_flood(self):
        """More clients than the limit listen and send requests: as many as the limit are served, the others are
        rejected and counted."""
        limit = self.before["clients_max"]
        storm = self.storm(limit + 100, 5000, 3)
        workload = self.spinner()
        self.wait_home(self.running, workload)
        said = json.loads(storm.stdout.read())
        self.assertEqual(storm.wait(), 0, said)
        self.assertEqual((said["pending"], said["replies"] + said["errors"]), (0, said["calls"]), said)
        self.assertGreater(said["replies"], 0)
        # However slowly they connect, no place is free again before the last one has connected; but the checking
        # client may take a place.
        self.assertGreaterEqual(said["turned_away"], 100)
        self.assertGreaterEqual(said["served"], limit - 1)
        self.all_gone()
        self.assertGreaterEqual(self.status("clients_refused"), said["turned_away"])
        self.assertIn("too many clients", self.running.log())
        self.assertLess(self.running.log().count("too many clients"), 5)
        self.running.stop()

    def test_ticks_go_on(self):
        """Even while the event loop has more to do than it can."""
        workload = self.spinner("--threads=2")
        self.wait_home(self.running, workload)
        tick = self.status("tick")
        said = json.loads(self.storm(800, 20000, f"{3 * REPLIES_PER_TICK}x").stdout.read())
        self.assertGreaterEqual(said["replies"], 3 * REPLIES_PER_TICK)
        self.assertLess(said["replies"], REPLIES_PER_TICK * (self.status("tick") - tick))
        self.running.stop()

    def test_half_messages(self):
        """They stay as long as they like, and delay no other client; some disconnect in the middle of a message."""
        waiting = [self.open() for _ in range(20)]
        for i, client in enumerate(waiting):
            client.sendall(AUTH[:i * len(AUTH) // 20])
        waiting += [self.authenticated() for _ in range(20)]
        for i, client in enumerate(waiting[20:]):
            client.sendall(PING[:i * len(PING) // 20])
        self.assertGreaterEqual(self.status("clients"), 40)
        self.placing_goes_on()
        for round_ in range(10):
            for i in range(8):
                client = self.authenticated()
                client.sendall(PING[:(round_ * 8 + i) % len(PING)])
                client.close()
        self.placing_goes_on()
        for client in waiting:
            client.close()
        self.all_gone()
        self.running.stop()

    def test_what_is_no_message(self):
        """A client with another protocol is disconnected."""
        client = self.authenticated()
        client.sendall(PING)
        self.assertEqual(client.recv(4096)[:1], b"l")  # an answer; the following ones differ only slightly
        client.close()
        for words in (b"x" * 64, b"l\1\0\1" + b"\xff" * 60, PING[:12] + b"\xff" * 4 + PING[16:]):
            client = self.authenticated()
            client.sendall(words)
            self.hung_up(client)
        client = self.open()
        client.settimeout(lib.DEADLINE_SEC)
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")
        self.hung_up(client)
        self.placing_goes_on()
        self.all_gone()
        self.running.stop()

    def test_few_descriptors(self):
        """With few descriptors there are fewer places, and clients do not take the daemon's own."""
        self.running.stop()
        running = self.daemon(wrap=["prlimit", "--nofile=256:256"]).ready()
        limit = running.ctl("status")["clients_max"]
        self.assertEqual(limit, 256 // 4 // 3)
        self.running = running
        clients = [self.open() for _ in range(300)]
        self.hung_up(clients[-1])
        for client in clients:
            client.close()
        self.all_gone()
        self.assertGreater(self.status("clients_refused"), 200)
        self.placing_goes_on()
        running.stop()

    def test_too_long(self):
        """A client that announces a message longer than any call is disconnected before anything is stored for it."""
        for _ in range(20):
            client = self.authenticated()
            client.sendall(PING[:4] + (100 << 20).to_bytes(4, "little") + PING[8:])
            self.hung_up(client)
        self.assertEqual(self.status("clients_disconnected"), self.before["clients_disconnected"] + 20)
        self.placing_goes_on()
        self.running.stop()

    def test_who_does_not_read(self):
        """It is no longer served, is disconnected after half a minute, and is counted."""
        client = self.authenticated()
        client.settimeout(10 * lib.DEADLINE_SEC)  # only if it is never hung up on
        serial = 1
        try:
            while serial < 200000:
                serial += 1
                client.sendall(ping(serial))
        except (ConnectionResetError, BrokenPipeError):
            pass
        self.assertLess(serial, 200000)
        self.all_gone()
        self.assertEqual(self.status("clients_disconnected"), self.before["clients_disconnected"] + 1)
        self.placing_goes_on()
        self.running.stop()


if __name__ == "__main__":
    lib.main()
