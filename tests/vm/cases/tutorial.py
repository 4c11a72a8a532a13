# SPDX-License-Identifier: LGPL-2.1-or-later
"""The commands of numaplace-tutorial(7), one after the other, with the policies as installed. Their output is that of
the page, except for numbers."""

import os
import pathlib
import re
import shutil
import subprocess
import time

import lib
import nodes
import tap

PAGE = pathlib.Path("/lab/man/numaplace-tutorial.7")
POLICIES = pathlib.Path("/lab/policies")
DWELLER = pathlib.Path(__file__).with_name("dweller.py")
MB = 300
# The shipped policy's MinAgeSec=, and the time until a home was decided, carried out, and sampled often enough.
SETTLE_SEC = 30


def transcript() -> list[tuple[str, list[str]]]:
    """Commands and their output, from the page."""
    found: list[tuple[str, list[str]]] = []
    for block in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            line = line.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")
            if line.startswith("# "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


def without_numbers(lines: list[str]) -> list[str]:
    """What must be the same: words. Durations and widths may differ."""
    text = [re.sub(r"\s+", " ", re.sub(r"\d+(\.\d+)?( (h|min|s|ms|us)\b)*( [KMG]iB\b| B\b)?", "N", line)).strip() for line in lines]
    return [line for line in text if line]


def is_as_shown(lines: list[str], shown: list[str]) -> bool:
    """A pattern from the page, where "..." stands for any lines."""
    if not shown:
        return not lines
    if shown[0] == "...":
        return any(is_as_shown(lines[i:], shown[1:]) for i in range(len(lines) + 1))
    return bool(lines) and lines[0] == shown[0] and is_as_shown(lines[1:], shown[1:])


class Tutorial(nodes.NodesTest):
    def start_program(self):
        """A service whose memory is on node 0, and whose one thread runs on node 1 and may run anywhere."""
        program = self.directory / "shopdb"
        program.symlink_to(shutil.which("python3"))
        near, far = (str(max(nodes.node_cpus(node))) for node in (0, 1))
        subprocess.run(["systemd-run", "-q", "--unit=shopdb.service", "--collect", program, DWELLER, str(MB), near, far, "any", "1"],
                       check=True)
        self.addCleanup(subprocess.run, ["systemctl", "stop", "shopdb.service"], check=False)

        def pid():
            show = subprocess.run(["systemctl", "show", "--value", "-p", "MainPID", "shopdb.service"], capture_output=True, text=True, check=True)
            return int(show.stdout)

        def ready():
            status = pathlib.Path(f"/proc/{pid()}/status").read_text(encoding="ascii")
            return (int(status.split("VmRSS:")[1].split()[0]) >= MB << 10 and "Threads:\t2" in status
                    and os.sched_getaffinity(pid()) == set(self.everything))

        lib.wait_until("the program to be there", ready)
        return pid()

    def test_tutorial(self):
        policies = pathlib.Path("/etc/numaplace/policy.d")
        policies.mkdir(parents=True)
        self.addCleanup(shutil.rmtree, "/etc/numaplace")
        shutil.copy(POLICIES / "90-default.policy", policies)
        pid = self.start_program()
        daemon = subprocess.Popen([lib.DAEMON], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.stderr.close)
        self.addCleanup(daemon.terminate)
        time.sleep(SETTLE_SEC)

        commands = transcript()
        self.assertLessEqual(len([command for command, _ in commands if "numaplacectl" in command]), 5)
        said = []
        for command, _ in commands:
            argv = command.replace("1234", str(pid)).split()
            argv[0] = lib.CTL if argv[0] == "numaplacectl" else argv[0]
            run = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=lib.DEADLINE_SEC)
            self.assertEqual((run.returncode, run.stderr), (0, ""), command)
            said.append(run.stdout.replace(str(pid), "1234").splitlines())
            print(f"# $ {command}", *(f"# {line}" for line in said[-1]), sep="\n", flush=True)
            if "enable" in command:
                time.sleep(SETTLE_SEC)
        for (command, shown), lines in zip(commands, said):
            self.assertTrue(is_as_shown(without_numbers(lines), without_numbers(shown)), f"{command}: {lines}\n{shown}")


if __name__ == "__main__":
    tap.main()
