# SPDX-License-Identifier: LGPL-2.1-or-later
"""What zsh and fish offer for the last word of a command line, obtained from the shells themselves."""

import os
import pathlib
import pty
import select
import subprocess
import tempfile
import time

from lib import DEADLINE_SEC


def fish(completions: pathlib.Path, line: str, env: dict) -> set[str]:
    """The first column of its list."""
    script = 'source "$argv[1]"; complete -C "$argv[2]"'
    run = subprocess.run(["fish", "-N", "-c", script, str(completions / "numaplacectl.fish"), line], stdin=subprocess.DEVNULL,
                         capture_output=True, text=True, check=True, timeout=DEADLINE_SEC, env=env)
    return {offered.split("\t")[0] for offered in run.stdout.splitlines()}


class Zsh:
    """An interactive zsh on a terminal of its own, because completion is part of its line editor. Use as a context
    manager.

    Each prompt has a number. Keys sent before the prompt would reach a terminal in canonical mode, where ^D and ^U
    mean something else."""

    SETUP = """RPS1= n=0
precmd() { (( n++ )); PS1="ready-$n:" }
setopt no_beep no_prompt_cr no_prompt_sp no_auto_menu list_packed
unset zle_bracketed_paste
fpath=({completions} $fpath)
autoload -Uz compinit
compinit -u -D
zstyle ':completion:*' list-max 1000
zstyle ':completion:*' list-prompt ''
LISTMAX=1000 COLUMNS=400 LINES=200
bindkey '^D' list-choices
bindkey '^U' kill-whole-line
"""

    def __init__(self, completions: pathlib.Path, env: dict):
        self.setup = self.SETUP.replace("{completions}", str(completions))
        self.env = env
        self.count = 1

    def __enter__(self) -> "Zsh":
        self.home = tempfile.TemporaryDirectory(prefix="numaplace-zsh-")
        (pathlib.Path(self.home.name) / ".zshrc").write_text(self.setup, encoding="ascii")
        pid, self.fd = pty.fork()
        if pid == 0:
            os.execvpe("zsh", ["zsh", "-d", "-i"], {**self.env, "TERM": "dumb", "ZDOTDIR": self.home.name})
        self.pid = pid
        self.until_prompt()
        return self

    def __exit__(self, *exc) -> None:
        os.write(self.fd, b"\x15exit\n")
        os.close(self.fd)
        os.waitpid(self.pid, 0)
        self.home.cleanup()

    def prompt(self) -> str:
        return f"ready-{self.count}:"

    def until_prompt(self) -> str:
        text, end = "", time.monotonic() + DEADLINE_SEC
        while self.prompt() not in text:
            if not select.select([self.fd], [], [], max(0.0, end - time.monotonic()))[0]:
                raise AssertionError(f"zsh did not say {self.prompt()}: {text}")
            text += os.read(self.fd, 65536).decode(errors="replace")
        return text

    def offers(self, line: str) -> set[str]:
        """The words of the list it shows, without their descriptions. The list is between the line and its
        repetition."""
        here = self.prompt()
        os.write(self.fd, line.encode() + b"\x04\x15\n")
        self.count += 1
        lines = [shown.removeprefix(here).strip() for shown in self.until_prompt().replace("\r", "").split("\n")]
        offered = set()
        for shown in lines[1:]:
            if shown.startswith(line.strip()):
                return offered
            offered |= {shown.split()[0]} if " -- " in shown else set(shown.split())
        return set()
