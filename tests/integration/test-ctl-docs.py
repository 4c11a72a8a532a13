#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every verb and option is in the manual, in --help and in the three completions, and no others are.

--help is printed from the tables with which the command line is parsed, so the others are compared with it.
"""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import ctllib
import shells
import terminal
from lib import CTL, DEADLINE_SEC, SOURCE


def help_tables():
    """(verbs, options) of --help: {"policy list", ...} and {"--json": takes an argument, ...}, {"-h", ...}."""
    verbs, options, letters, section = set(), {}, set(), None
    for line in ctllib.run("--help").stdout.splitlines():
        if line in ("Verbs:", "Options:"):
            section = line
        elif not line:
            section = None
        elif section == "Verbs:":
            verbs.add(re.match(r"  (\w+(?: [a-z]+)?)", line).group(1))
        elif section == "Options:":
            match = re.match(r"  (?:(-\w),|   ) (--[\w-]+)(=?)", line)
            options[match.group(2)] = bool(match.group(3))
            if match.group(1):
                letters.add(match.group(1))
    return verbs, options, letters


class Docs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.verbs, cls.options, cls.letters = help_tables()

    def read(self, path):
        return (SOURCE / path).read_text(encoding="utf-8")

    def test_help(self):
        # If a parser above finds nothing, that must not count as agreement.
        self.assertGreaterEqual(len(self.verbs), 15)
        self.assertGreaterEqual(len(self.options), 15)
        self.assertIn("policy list", self.verbs)
        self.assertEqual(self.letters, {"-h", "-f", "-n"})
        self.assertTrue(self.options["--json"])
        self.assertFalse(self.options["--all"])

    def test_verbs_that_need_no_daemon(self):
        """--help and the manual name those that do not ask for one, except those that write policy files."""
        arguments = {"diagnose": ["4194304"], "policy match": ["true"], "run": ["--policy=x", "true"],
                     **dict.fromkeys(("simulate", "replay"), ["/nonexistent"]),
                     **dict.fromkeys(("show", "tasks", "explain", "pause", "resume", "release"), ["1"])}
        alone = {verb for verb in self.verbs - {"enable", "disable"} if "Is numaplaced running?" not in
                 ctllib.run("--socket=/nonexistent", *verb.split(), *arguments.get(verb, [])).stderr}
        policy = {f"policy {verb}" for verb in self.policy_verbs()}
        named = re.search(r"^([\w, ]+) and the policy verbs need neither a running daemon$", ctllib.run("--help").stdout,
                          re.MULTILINE)[1].split(", ")
        self.assertEqual({*named, *policy}, alone)
        self.assertEqual(len(named), len(alone - policy))
        self.assertIn("".join(f".Cm {verb} ,\n" for verb in named[:-1]) + f".Cm {named[-1]}\nand the\n.Cm policy\nverbs need "
                      "neither a running daemon nor root", self.read("man/numaplacectl.1"))

    def test_exit_codes(self):
        manual = self.read("man/numaplacectl.1").partition(".Sh EXIT STATUS")[2].partition(".Sh ")[0]
        shown = ctllib.run("--help").stdout.partition("Exit codes: ")[2]
        self.assertEqual(set(re.findall(r"(\d+) ", shown)), set(re.findall(r"^\.It (\d+)$", manual, re.MULTILINE)))

    def test_manual(self):
        text = self.read("man/numaplacectl.1")
        # The first words of ".It Cm policy list", ".It Cm show Ar workload".
        verbs = {re.match(rf"(\w+(?: (?:{'|'.join(self.policy_verbs())})\b)?)", item).group(1)
                 for item in re.findall(r"^\.It Cm (.*)$", text, re.MULTILINE)}
        self.assertEqual(verbs, self.verbs)
        items = re.findall(r"^\.It Fl (.*)$", text, re.MULTILINE)
        options = {}
        letters = set()
        for item in items:
            match = re.match(r"(?:(\w) , )?-([\w-]+)( Ns = Ns Ar)?", item)
            options[f"--{match.group(2)}"] = bool(match.group(3))
            if match.group(1):
                letters.add(f"-{match.group(1)}")
        self.assertEqual(options, self.options)
        self.assertEqual(letters, self.letters)

    def test_verdicts(self):
        code = re.findall(r'\[DIAGNOSE_\w+\]\s*=\s*\{"([\w-]+)"', self.read("src/ctl/diagnose/verdict.c"))
        self.assertGreaterEqual(len(code), 16)
        listed = re.findall(r"^\.It Li (.*)$", self.read("man/numaplacectl.1"), re.MULTILINE)
        self.assertTrue(set(code) <= set(" ".join(listed).replace(",", " ").split()))

    def test_titles(self):
        """The manuals quote titles of columns as the tables have them."""
        titles = set(re.findall(r'\{"([A-Z][A-Z -]+)",', self.read("src/ctl/verbs/workloads.c")))
        self.assertIn("WORKLOAD", titles)
        quoted = re.findall(r'^\.Pq Ql "?([A-Z][A-Z -]+[A-Z])"? [.,]$', self.read("man/numaplacectl.1"), re.MULTILINE)
        quoted += re.findall(r"^The column\n\.Ql (.*)$", self.read("man/numaplaced.8"), re.MULTILINE)
        self.assertGreaterEqual(len(quoted), 6)
        self.assertLessEqual(set(quoted), titles)

    def first_words(self):
        return {verb.split()[0] for verb in self.verbs}

    def policy_verbs(self):
        return {verb.split()[1] for verb in self.verbs if verb.startswith("policy ")}

    def test_bash(self):
        text = self.read("completions/numaplacectl.bash")
        self.assertEqual(set(re.search(r'local verbs="(.*)"', text).group(1).split()), self.first_words())
        self.assertEqual(set(re.search(r'"policy "\).*compgen -W "(.*?)"', text).group(1).split()),
                         self.policy_verbs())
        words = {word for value in re.findall(r'(?:common|options)="(.*)"', text) for word in value.split()}
        self.assertEqual({w.rstrip("=") for w in words if w.startswith("--")}, set(self.options))
        for name, takes_argument in self.options.items():
            self.assertIn(name + ("=" if takes_argument else ""), words)
        self.assertEqual({w for w in words if not w.startswith("--")}, self.letters)

    def complete(self, *words, env=None):
        """What bash offers for the last of these words."""
        script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _numaplacectl; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        run = subprocess.run(["bash", "-c", script, "bash", str(SOURCE / "completions/numaplacectl.bash"),
                              "numaplacectl", *words], capture_output=True, text=True, timeout=DEADLINE_SEC, check=True, env=env)
        return set(run.stdout.split())

    @unittest.skipUnless(shutil.which("bash"), "bash is not installed")
    def test_bash_completes(self):
        self.assertEqual(self.complete("re"), {"resume", "release", "reload", "replay", "report"})
        self.assertEqual(self.complete("policy", ""), self.policy_verbs())
        self.assertEqual(self.complete("--json", "=", "p"), {"pretty"})
        self.assertEqual(self.complete("status", "--no"), {"--no-legend", "--no-pager"})
        self.assertIn("--follow", self.complete("moves", "--"))
        self.assertNotIn("--follow", self.complete("status", "--"))
        self.assertEqual(self.complete("policy", "cat", "--eff"), {"--effective"})
        self.assertEqual(self.complete("run", "--pol"), {"--policy=", "--policy-dir="})
        self.assertEqual(self.complete("run", "--no-daemon", "status", "--no"), set())  # an option of another program
        self.assertIn("/etc/passwd", self.complete("report", "--html", "=", "/etc/pass"))
        for verb in ("explain", "resume", "release"):
            self.assertIn(str(os.getpid()), self.complete(verb, ""))
        env = self.told()
        # As in readline: = is a word of its own.
        self.offers_of(lambda line: self.complete(*re.findall(r"=|[^= ]+", line)[1:], "", env=env))

    @unittest.skipUnless(shutil.which("bash"), "bash is not installed")
    def test_bash_completes_names_of_files(self):
        """Blanks are quoted, and a directory is followed by a slash, not a blank."""
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="numaplacectl-")))
        (directory / "a b").mkdir()
        with terminal.Terminal(["bash", "--norc", "--noprofile", "-i"], columns=400,
                               env={"PS1": "ready> ", "INPUTRC": "/dev/null"}) as bash:
            bash.wait("ready> ")
            bash.press(f"source '{SOURCE}/completions/numaplacectl.bash'\n")
            bash.wait("ready> ")
            for line in ("simulate ", "policy verify ", "--html=", "enable --policy-dir="):
                bash.press(f"numaplacectl {line}{directory}/a\t")
                bash.wait(f"{directory}/a\\ b/")
                bash.press("\x15")

    def test_zsh(self):
        text = self.read("completions/_numaplacectl")
        self.assertEqual(set(re.findall(r"^    '(\w+):", text, re.MULTILINE)), self.first_words())
        self.assertEqual(set(re.search(r"_values 'policy verb' (.*) ;;", text).group(1).split()),
                         self.policy_verbs())
        # '--xml=[...]', '(...)--xml=[...]', {-f,--follow}'[...]', {-n+,--lines=}'[...]'
        found = set(re.findall(r"[*)',](--[\w-]+)=?(?:\[|\}'\[)", text))
        self.assertEqual(found, set(self.options))
        self.assertEqual({f"-{c}" for c in re.findall(r"\{-(\w)\+?,--", text)}, self.letters)

    def test_fish(self):
        text = self.read("completions/numaplacectl.fish")
        self.assertEqual(set(re.search(r"set -l verbs (.*)", text).group(1).split()), self.first_words())
        self.assertEqual(set(re.search(r"set -l policy_verbs (.*)", text).group(1).split()), self.policy_verbs())
        self.assertEqual(set(re.findall(r"-n \$no_verb -a (\w+)", text)), self.first_words())
        self.assertEqual({f"--{name}" for name in re.findall(r" -l ([\w-]+)", text) if name not in
                          ("verbs", "policy_verbs", "no_verb", "in_policy")}, set(self.options))
        self.assertEqual({f"-{c}" for c in re.findall(r" -s (\w) ", text)}, self.letters)

    def offers(self, offer):
        """What a shell offers for the last word of some lines; its helpers call the program under test."""
        self.assertEqual(offer("numaplacectl re"), {"resume", "release", "reload", "replay", "report"})
        self.assertEqual(offer("numaplacectl policy "), self.policy_verbs())
        self.assertEqual(offer("numaplacectl status --no"), {"--no-legend", "--no-pager"})
        self.assertEqual(offer("numaplacectl run --pol"), {"--policy", "--policy-dir"})
        self.assertIn("--follow", offer("numaplacectl moves --"))
        self.assertNotIn("--follow", offer("numaplacectl status --"))
        self.assertLessEqual({"--policy-dir", "--root"}, offer("numaplacectl policy list --"))
        self.assertNotIn("--no-daemon", offer("numaplacectl run --policy=x true --"))
        for verb in ("explain", "resume", "release"):
            self.assertTrue(any(word.isdigit() for word in offer(f"numaplacectl {verb} ")), verb)
        # After run comes the command line of another program, here numaplacectl itself.
        for run in ("run", "run --policy=x"):
            self.assertEqual(offer(f"numaplacectl {run} numaplacectl re"), {"resume", "release", "reload", "replay", "report"})

    FAKE = """#!/bin/sh
for word; do
    case $word in
        --*=*) echo "$1-${word#--}" | tr /= _- ;;
    esac
done
"""

    def told(self):
        """An environment with a numaplacectl that, when asked for a list, prints the options it was given."""
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="numaplacectl-")))
        (directory / "numaplacectl").write_text(self.FAKE, encoding="ascii")
        (directory / "numaplacectl").chmod(0o755)
        return {**os.environ, "PATH": f"{directory}:{os.environ['PATH']}", "HOME": "/home"}

    def offers_of(self, offer):
        """Names come from the daemon and from the directories in the line."""
        for line, names in {
            "--socket=/a/b show": {"workloads-socket-_a_b"},
            "show --socket /a/b": {"workloads-socket-_a_b"},
            "show --socket=~/b": {"workloads-socket-_home_b"},
            "--json=short pause --policy-dir=/x": set(),
            "policy cat --policy-dir=/x --policy-dir=/y": {"policy-policy-dir-_x", "policy-policy-dir-_y"},
            "disable --root=/x --socket=/a": {"policy-root-_x"},
        }.items():
            with self.subTest(line=line):
                self.assertEqual(offer(f"numaplacectl {line} "), names)

    def environment(self):
        return {**os.environ, "PATH": f"{pathlib.Path(CTL).parent}:{os.environ['PATH']}"}

    @unittest.skipUnless(shutil.which("zsh"), "zsh is not installed")
    def test_zsh_completes(self):
        with shells.Zsh(SOURCE / "completions", self.environment()) as zsh:
            self.offers(zsh.offers)
            self.assertEqual(zsh.offers("numaplacectl --json="), {"pretty", "short", "off"})
        with shells.Zsh(SOURCE / "completions", self.told()) as zsh:
            self.offers_of(zsh.offers)

    @unittest.skipUnless(shutil.which("fish"), "fish is not installed")
    def test_fish_completes(self):
        def offer(line):
            return shells.fish(SOURCE / "completions", line, self.environment())

        self.offers(offer)
        self.assertEqual(offer("numaplacectl --json="), {f"--json={mode}" for mode in ("pretty", "short", "off")})
        env = self.told()
        self.offers_of(lambda line: shells.fish(SOURCE / "completions", line, env))

    def test_syntax(self):
        for shell, path in (("bash", "numaplacectl.bash"), ("zsh", "_numaplacectl"), ("fish", "numaplacectl.fish")):
            with self.subTest(shell=shell):
                if not shutil.which(shell):
                    self.skipTest(f"{shell} is not installed")
                subprocess.run([shell, "-n", str(SOURCE / "completions" / path)], check=True, timeout=DEADLINE_SEC)


if __name__ == "__main__":
    unittest.main()
