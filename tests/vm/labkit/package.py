# SPDX-License-Identifier: LGPL-2.1-or-later
"""Debian packages of this tree for the release of a guest, built and checked with lintian in a root of that release.

The root is Debian's own minimal build environment with the build dependencies of packaging/debian/control and nothing
else, so an undeclared build dependency shows. It is kept as a tar file; so are the packages, as long as their sources
do not change.
"""

import fcntl
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from . import IMAGES, SOURCE, LabError, Unavailable, image, note

PACKAGES = SOURCE / "build-lab" / "packages"
CONTROL = SOURCE / "packaging" / "debian" / "control"
# Unit tests are left out: they run elsewhere, and would double the time.
PROFILE = "nocheck"

# Unpacks root.tar and source.tar, builds, and leaves the result in `out`. It runs in a mount namespace of its own,
# and mounts in another one, so that they are gone before the tree is removed.
BUILD_SCRIPT = """
    set -eu
    export PATH="$PATH:/usr/sbin:/sbin"
    cd "$1"
    mkdir root
    tar -C root --exclude='./dev/*' -xf "$2"
    tar -C root/build -xf source.tar
    ln -s /proc/self/fd root/dev/fd
    unshare --mount -- sh -euc '
        for device in null zero random urandom; do
            : > "root/dev/$device"
            mount --bind "/dev/$device" "root/dev/$device"
        done
        mount -t proc proc root/proc
        exec chroot root env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
            DEB_BUILD_OPTIONS="$1" DEB_BUILD_PROFILES="$2" sh -euc "
                cd /build/numaplace
                cp -a packaging/debian debian
                dpkg-buildpackage -us -uc
                lintian --version
                lintian --allow-root --fail-on error,warning ../*.changes"
    ' sh "$3" "$4"
    mkdir out
    cp root/build/*.deb out
    rm -rf --one-file-system root
"""


def sources() -> list[str]:
    """The current tree, without what git ignores."""
    run = subprocess.run(["git", "-C", str(SOURCE), "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True, check=False)
    if run.returncode:
        raise Unavailable(f"git ls-files: {run.stderr.strip()}")
    return sorted(name for name in run.stdout.split("\0") if name and (SOURCE / name).is_file())


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


def source_hash(names: list[str]) -> str:
    """A hash of what the packages are made of; no package contains tests."""
    return digest(BUILD_SCRIPT.encode(), *(part for name in names if not name.startswith("tests/")
                                           for part in (name.encode(), (SOURCE / name).read_bytes())))


def root_argv(suite: str, tar: pathlib.Path, control: pathlib.Path) -> list[str]:
    argv = ["mmdebstrap", "--mode=auto", "--variant=buildd", "--architectures=amd64", "--include=lintian",
            "--aptopt=Acquire::Retries \"3\"", "--aptopt=APT::Install-Recommends \"false\"",
            "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
            "--customize-hook=mkdir -p \"$1/build/wanted/debian\"", f"--customize-hook=copy-in {control} /build/wanted/debian",
            f"--customize-hook=chroot \"$1\" apt-get -q -y -P {PROFILE} build-dep /build/wanted",
            "--customize-hook=rm -r \"$1/build/wanted\""]
    if image.KEYRING.exists():
        argv.append(f"--keyring={image.KEYRING}")
    return [*argv, suite, str(tar), f"deb {image.MIRROR} {suite} main", f"deb {image.SECURITY} {suite}-security main"]


def ensure_root(suite: str) -> pathlib.Path:
    """The tar file of the root in which packages are built."""
    recipe = " ".join(root_argv(suite, pathlib.Path("root.tar"), pathlib.Path("control")))
    tar = IMAGES / f"{suite}-build-{digest(recipe.encode(), CONTROL.read_bytes())}.tar"
    if tar.exists():
        return tar
    note(f"making a root that packages for {suite} are built in, once; this takes a minute and needs the network")
    log = IMAGES / f"{suite}-build.log"
    log.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{suite}-build-", dir=IMAGES) as work, tempfile.TemporaryDirectory() as recipe_dir:
        # Where the users of a namespace may read and write.
        for path in (work, recipe_dir):
            os.chmod(path, 0o755)
        control = pathlib.Path(shutil.copy(CONTROL, recipe_dir))
        env = dict(os.environ, TMPDIR=work) if os.geteuid() == 0 else None
        new = pathlib.Path(work) / "root.tar"
        image.run_logged(image.private(root_argv(suite, new, control)), log, Unavailable, env)
        for old in IMAGES.glob(f"{suite}-build-*.tar"):
            old.unlink()
        new.rename(tar)
    return tar


def build(suite: str, names: list[str], target: pathlib.Path) -> None:
    note(f"building the packages for {suite}; this takes a few minutes when the machine is busy")
    tar, log = ensure_root(suite), PACKAGES / f"{suite}.log"
    log.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{suite}-", dir=PACKAGES) as name:
        listed = "".join(f"{path}\0" for path in names).encode()
        subprocess.run(["tar", "-C", str(SOURCE), "--owner=0", "--group=0", "--null", "-T", "-", "--transform=s,^,numaplace/,S",
                        "-cf", f"{name}/source.tar"], input=listed, check=True)
        options = f"{PROFILE} parallel={os.cpu_count()}"
        # For root, in a namespace that ends with a killed build; for others, in one where they are root.
        prefix = image.private([]) or [*image.as_owner(), "unshare", "--mount", "--pid", "--fork", "--kill-child", "--"]
        image.run_logged([*prefix, "sh", "-c", BUILD_SCRIPT, "sh", name, str(tar), options, PROFILE], log, LabError)
        for old in PACKAGES.glob(f"{suite}-{12 * '?'}"):
            shutil.rmtree(old)
        (pathlib.Path(name) / "out").rename(target)


def ensure(suite: str) -> list[pathlib.Path]:
    """The packages for a suite. Builds them when something has changed, one process at a time."""
    image.need_programs("mmdebstrap", "tar", "unshare", "git")
    for directory in (PACKAGES, IMAGES):
        directory.mkdir(parents=True, exist_ok=True)
    names = sources()
    target = PACKAGES / f"{suite}-{source_hash(names)}"
    with open(PACKAGES / f"{suite}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            build(suite, names, target)
    return sorted(path for path in target.glob("*.deb") if "-dbgsym" not in path.name)


def lintian(suite: str) -> str:
    """The output of lintian, and its version."""
    text = (PACKAGES / f"{suite}.log").read_text(encoding="utf-8", errors="replace")
    return text[text.rindex("\nLintian v") + 1:].strip() if re.search(r"^Lintian v", text, re.MULTILINE) else ""
