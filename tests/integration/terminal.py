# SPDX-License-Identifier: LGPL-2.1-or-later
"""A program on a terminal of its own: sends keys, and looks for its output."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

# Only a hang takes longer, even in a sanitized build beside others.
DEADLINE_SEC = 600


class Terminal:
    """Use as a context manager. Output is discarded up to the end of what was waited for."""

    def __init__(self, argv: list[str], rows: int = 24, columns: int = 80, env: dict | None = None):
        pid, self.fd = pty.fork()
        if pid == 0:
            # The size is set before the program starts.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvpe(argv[0], argv, {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **(env or {})})
        self.pid, self.text, self.status = pid, "", None

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *exc) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)

    def _read(self, until: float) -> bool:
        if not select.select([self.fd], [], [], max(0.0, until - time.monotonic()))[0]:
            return False
        try:
            self.text += os.read(self.fd, 65536).decode(errors="replace")
        except OSError:
            return False
        return True

    def wait(self, text: str) -> str:
        """What was written until then."""
        until = time.monotonic() + DEADLINE_SEC
        while text not in self.text:
            if not self._read(until):
                raise AssertionError(f"waited in vain for {text!r}: {self.text[-4000:]!r}")
        before, _, self.text = self.text.partition(text)
        return before

    def drain(self, seconds: float) -> None:
        """Reads and discards what is written meanwhile."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._read(until)
        self.text = ""

    def press(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self) -> int:
        """Waits for its end, and returns its exit status."""
        until = time.monotonic() + DEADLINE_SEC
        while self._read(until):
            pass
        _, status = os.waitpid(self.pid, 0)
        self.status = os.waitstatus_to_exitcode(status)
        return self.status
