#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is installed is packaged, what is packaged is installed, all packages have the version of the project, and they start, stop and
watch what they have installed.

usage: packaging.py SOURCE_ROOT BUILD_ROOT
"""

import fnmatch
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import lint

# As in Fedora; %name is known to the spec.
MACROS = {
    "_bindir": "/usr/bin",
    "_sbindir": "/usr/sbin",
    "_prefix": "/usr",
    "_datadir": "/usr/share",
    "_includedir": "/usr/include",
    "_mandir": "/usr/share/man",
    "_sysconfdir": "/etc",
    "_unitdir": "/lib/systemd/system",
    "_presetdir": "/lib/systemd/system-preset",
    "name": "numaplace",
}


def installed(build):
    """Paths as with --prefix=/usr, wherever systemd's directory is on this machine."""
    run = subprocess.run(["meson", "introspect", "--installed", "--buildoptions", build], capture_output=True, text=True,
                         check=True)
    found = json.loads(run.stdout)
    prefix = next(option["value"] for option in found["buildoptions"] if option["name"] == "prefix")
    paths = {re.sub(rf"^{re.escape(prefix)}/", "/usr/", path) for path in found["installed"].values()}
    return {re.sub(r"^/usr/lib/systemd/(system|system-preset)/", r"/lib/systemd/\1/", path) for path in paths}


def debian_patterns(texts):
    """First words of .install files and the like."""
    lines = [line for text in texts for line in text.splitlines() if line and not line.startswith("#")]
    return {"/" + line.split()[0].replace("${env:SYSTEMD_DIR}", "lib/systemd") for line in lines}


def spec_patterns(spec):
    patterns, inside = set(), False
    for line in spec.splitlines():
        if line.startswith("%"):
            inside = line.startswith("%files") or inside and not re.match(r"%(changelog|post|pre|package)", line)
        if not inside or re.match(r"%(files|license|doc|dir)\b", line) or not line:
            continue
        patterns.add(re.sub(r"%\{(\w+)\}", lambda macro: MACROS[macro[1]], line).rstrip("/"))
    return patterns


def check_list(where, patterns, paths):
    def covers(pattern, path):
        return fnmatch.fnmatch(path, pattern) or path.startswith(pattern.rstrip("/") + "/")

    for path in sorted(paths):
        if not any(covers(pattern, path) for pattern in patterns):
            yield f"{where}: {path} is installed, but not packaged"
    for pattern in sorted(patterns):
        if not any(covers(pattern, path) for path in paths):
            yield f"{where}: {pattern} is packaged, but not installed"


def check_versions(read):
    version = re.search(r"^ *version: '(.*)',", read("meson.build"), re.MULTILINE)[1]
    for path, pattern in {
        "packaging/debian/changelog": r"\Anumaplace \((.*?)\)",
        "packaging/rpm/numaplace.spec": r"^Version: *(\S+)$",
        "packaging/kubernetes/numaplace.yaml": r"image: numaplace:(\S+)$",
    }.items():
        found = re.search(pattern, read(path), re.MULTILINE)
        if not found or found[1] != version:
            yield f"{path}: version {found[1] if found else 'unknown'}, expected {version}"


def check_scriptlets(spec):
    """Removing the RPM stops its units, upgrading restarts its services, and neither deletes the undo journal."""
    units = re.findall(r"^%\{_unitdir\}/([^@\n]*)$", spec, re.MULTILINE)
    for macro, kinds in {"%systemd_post": "", "%systemd_preun": "", "%systemd_postun_with_restart": ".service"}.items():
        named = re.search(rf"^{macro} (.*)$", spec, re.MULTILINE)
        for unit in units:
            if unit.endswith(kinds) and (not named or unit not in named[1].split()):
                yield f"packaging/rpm/numaplace.spec: {macro} lacks {unit}"
    if re.search(r"^\s*rm .*/run/numaplace", spec, re.MULTILINE):
        yield "packaging/rpm/numaplace.spec: removes the undo journal, which a later installation needs"


def check_removal(path, script, argument):
    """What runs when a package is removed puts back, also in a container, whose journal has another name."""
    script = re.sub(r"^%systemd_preun .*\n", "", script, flags=re.MULTILINE)
    with tempfile.TemporaryDirectory() as root:
        run, called = pathlib.Path(root, "run"), pathlib.Path(root, "called")
        run.mkdir()
        (run / "journal-4026532000").touch()
        script = script.replace("/run/numaplace", str(run)).replace("%{_sbindir}/numaplaced", "numaplaced")
        subprocess.run(["sh", "-c", f'numaplaced() {{ echo "$@" > {called}; }}\n{script}', "sh", argument], check=False)
        said = called.read_text(encoding="utf-8") if called.exists() else "nothing"
    if said != "--restore\n":
        yield f"{path}: a removal runs numaplaced with {said.strip()}, expected --restore"


def check_patience(read):
    """Kubernetes ends the daemon no earlier than systemd would."""
    watchdog = int(re.search(r"^WatchdogSec=(\d+)s$", read("units/numaplaced.service.in"), re.MULTILINE)[1])
    path = "packaging/kubernetes/numaplace.yaml"
    period, failures = (int(re.search(rf"^ *{key}: (\d+)$", read(path), re.MULTILINE)[1])
                        for key in ("periodSeconds", "failureThreshold"))
    if period * failures < watchdog:
        yield f"{path}: the probe gives up after {period * failures} s, expected WatchdogSec={watchdog}s or more"


def test_ourselves(read):
    lint.self_test(
        lambda patterns, paths: check_list("list", patterns, paths),
        [
            (({"/usr/bin/x", "/usr/share/man"}, {"/usr/bin/x", "/usr/share/man/man1/x.1"}), None),
            (({"/usr/share/man/man1/x.1*"}, {"/usr/share/man/man1/x.1"}), None),
            (({"/usr/bin/x"}, {"/usr/bin/x", "/usr/bin/xy"}), "/usr/bin/xy is installed, but not packaged"),
            (({"/usr/bin/x", "/usr/bin/y"}, {"/usr/bin/x"}), "/usr/bin/y is packaged, but not installed"),
        ],
    )
    spec = "%files\n%license LICENSE\n%{_bindir}/x\n%dir %{_sysconfdir}/x\n\n%files devel\n%{_includedir}/%{name}/\n%changelog\n* me\n"
    if spec_patterns(spec) != {"/usr/bin/x", "/usr/include/numaplace"}:
        sys.exit(f"self-test: spec_patterns() gave {spec_patterns(spec)}")
    units = "%systemd_post x.service x.socket\n%systemd_preun x.service x.socket\n%systemd_postun_with_restart x.service\n"
    units += "%{_unitdir}/x.service\n%{_unitdir}/x@.service\n%{_unitdir}/x.socket\n"
    lint.self_test(
        check_scriptlets,
        [
            ((units,), None),
            ((units.replace("preun x.service", "preun"),), "%systemd_preun lacks x.service"),
            ((units.replace("t x.service x.socket", "t x.service", 1),), "%systemd_post lacks x.socket"),
            ((units.replace("restart x.service", "restart y.service"),), "%systemd_postun_with_restart lacks x.service"),
            ((units + "%postun\nrm -rf /run/numaplace\n",), "removes the undo journal"),
        ],
    )
    lint.self_test(
        check_removal,
        [
            (("prerm", "numaplaced --restore", "remove"), None),
            (("prerm", "[ ! -e /run/numaplace/journal ] || numaplaced --restore", "remove"), "runs numaplaced with nothing"),
        ],
    )
    lint.self_test(
        check_patience,
        [((read,), None), ((lambda path: re.sub(r"(failureThreshold:) \d+", r"\1 2", read(path)),), "gives up after 120 s")],
    )
    lint.self_test(
        check_versions,
        [((read,), None), ((lambda path: read(path).replace("(0", "(99.0"),), "packaging/debian/changelog: version 99.0")],
    )


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    root, build = sys.argv[1:]

    def read(path):
        return lint.read(root, path)

    test_ourselves(read)
    paths = installed(build)
    debian = [read(f"packaging/debian/{name}") for name in ("numaplace.install", "numaplace-dev.install", "not-installed")]
    problems = [*check_versions(read), *check_list("packaging/debian", debian_patterns(debian), paths)]
    spec = read("packaging/rpm/numaplace.spec")
    preun = re.search(r"^%preun\n(.*?)^%postun", spec, re.MULTILINE | re.DOTALL)[1]
    problems += [*check_scriptlets(spec), *check_patience(read), *check_removal("packaging/rpm/numaplace.spec", preun, "0")]
    problems += check_removal("packaging/debian/numaplace.prerm", read("packaging/debian/numaplace.prerm"), "remove")
    problems += check_list("packaging/rpm/numaplace.spec", spec_patterns(spec), paths)
    lint.finish(problems, len(paths))


main()
