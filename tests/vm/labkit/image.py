# SPDX-License-Identifier: LGPL-2.1-or-later
"""Root file system, kernel and initial RAM disk of a suite, from Debian's packages and nothing else.

An image is three files named after the suite, its variant, and a hash of everything it is made of, so it is built
again when the recipe changes. Nothing is installed on the host and no root is needed: mmdebstrap and mke2fs run in a
user namespace, if they must.
"""

import fcntl
import hashlib
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass

from . import IMAGES, VM, LabError, Unavailable, cpio, note, release

MIRROR = "http://deb.debian.org/debian"
SECURITY = "http://security.debian.org/debian-security"
KEYRING = pathlib.Path("/usr/share/keyrings/debian-archive-keyring.gpg")

# systemd does not depend on udev, so there is none. python3-minimal lacks json, subprocess and unittest.
PACKAGES = ("systemd-sysv", "python3", "util-linux", "procps", "numactl", "numad", "rt-tests", "strace")
# Additional packages of an image, when a case asks for them (Image=): a bus daemon alone makes the boot of every
# guest longer. service: what the package of numaplace depends on and talks to. Both bus daemons are tested: Debian 12
# gets the usual one.
EXTRA = {
    "service": {
        "bookworm": ("dbus", "polkitd", "libcpuset1", "libhwloc15", "libjson-c5", "libmicrohttpd12", "libsmartcols1"),
        "trixie": ("dbus-broker", "polkitd", "libcpuset1", "libhwloc15", "libjson-c5", "libmicrohttpd12t64", "libsmartcols1"),
    },
}
# Modules in the initial RAM disk, with their dependencies. ext4 requests crc32c without depending on it.
MODULES = ("virtio_pci", "virtio_console", "nfit", "nd_pmem", "ext4", "crc32c_generic")
RECIPE_FILES = ("customize.sh", "init", "lab.service")

# Unpacks the tar of the packages, extracts the kernel, and makes a file system of the rest. One script, since it must
# run in one user namespace. The 256 MB are for files of a job; a job that writes more finds the disk full. A disk is
# memory of the guest, in units of DISK_MB.
DISK_MB = 128
DISK_SCRIPT = """
    set -eu
    export PATH="$PATH:/usr/sbin:/sbin"
    cd "$1"
    mkdir root
    tar -C root --exclude='./dev/*' -xf root.tar
    mv root/lab-boot boot
    size=$(($(du -sm root | cut -f 1) * 11 / 10 + 256))
    mke2fs -q -t ext4 -L root -O ^has_journal -m 0 -d root root.ext4 $(((size + $2 - 1) / $2 * $2))m
    rm -rf root
"""


@dataclass(frozen=True)
class Image:
    suite: str
    variant: str
    name: str
    root: pathlib.Path
    kernel: pathlib.Path
    initrd: pathlib.Path

    def complete(self) -> bool:
        return all(path.exists() for path in (self.root, self.kernel, self.initrd))


def need_programs(*names: str) -> None:
    for name in names:
        if not shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin"):
            raise Unavailable(f"{name} is not installed (./dev setup)")


def packages(suite: str, variant: str) -> tuple[str, ...]:
    return (*PACKAGES, *EXTRA[variant][release(suite)]) if variant else PACKAGES


def recipe_hash(suite: str, variant: str) -> str:
    words = (*bootstrap_argv(suite, packages(suite, variant), pathlib.Path("root.tar"), "recipe"), DISK_SCRIPT, *MODULES)
    parts = [" ".join(words).encode()]
    for path in (*(VM / "image" / name for name in RECIPE_FILES), pathlib.Path(cpio.__file__)):
        parts.append(path.read_bytes())
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


def find(suite: str, variant: str) -> Image:
    name = f"{suite}-{variant}" if variant else suite
    stem = IMAGES / f"{name}-{recipe_hash(suite, variant)}"
    return Image(suite, variant, name, stem.with_suffix(".ext4"), stem.with_suffix(".kernel"), stem.with_suffix(".initrd"))


def ensure(suite: str, variant: str = "") -> Image:
    """The image of a suite, with the packages of EXTRA[variant]. Builds it when there is none, one process at a time."""
    image = find(suite, variant)
    if image.complete():
        return image
    need_programs("mmdebstrap", "mke2fs", "tar", "unshare")
    IMAGES.mkdir(parents=True, exist_ok=True)
    with open(IMAGES / f"{image.name}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not image.complete():
            build(image)
    return image


def build(image: Image) -> None:
    note(f"building the image {image.name}, once; this takes a few minutes and needs the network")
    with tempfile.TemporaryDirectory(prefix=f"{image.name}-", dir=IMAGES) as name:
        work, log = pathlib.Path(name), IMAGES / f"{image.name}.log"
        log.unlink(missing_ok=True)
        bootstrap_image(image, work, log)
        run_logged([*as_owner(), "sh", "-c", DISK_SCRIPT, "sh", name, str(DISK_MB)], log, LabError)
        boot = work / "boot"
        (work / "initrd").write_bytes(make_initrd(boot))
        kernel = next(path for pattern in ("boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz") for path in boot.glob(pattern))
        # Older ones of this name, and none of a longer name: a hash has twelve digits.
        for old in IMAGES.glob(f"{image.name}-{12 * '?'}.*"):
            old.unlink()
        kernel.rename(image.kernel)
        (work / "initrd").rename(image.initrd)
        (work / "root.ext4").rename(image.root)
    note(f"built {image.root}")


def bootstrap_image(image: Image, work: pathlib.Path, log: pathlib.Path) -> None:
    """Makes WORK/root.tar. The recipe is copied to where the users of a namespace may read it, whatever the mode of
    the home directory. For the same reason only root unpacks in `work`, where everything is removed in the end, in
    any case."""
    with tempfile.TemporaryDirectory(prefix="lab-recipe-") as recipe:
        for name in RECIPE_FILES:
            shutil.copy(VM / "image" / name, recipe)
        pathlib.Path(recipe).chmod(0o755)
        bootstrap(bootstrap_argv(image.suite, packages(image.suite, image.variant), work / "root.tar", recipe), work, log)


def bootstrap(argv: list[str], work: pathlib.Path, log: pathlib.Path) -> None:
    work.chmod(0o755)
    env = dict(os.environ, TMPDIR=str(work)) if os.geteuid() == 0 else None
    run_logged(private(argv), log, Unavailable, env)


def run_logged(argv: list[str], log: pathlib.Path, error: type[LabError], env: dict | None = None) -> None:
    with open(log, "ab") as out:
        status = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, check=False).returncode
    if status:
        tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:]
        raise error("\n".join([f"{argv[0]} failed with status {status}; the end of {log}:", *tail]))


def bootstrap_argv(suite: str, wanted: tuple[str, ...], tar: pathlib.Path, recipe: str) -> list[str]:
    """The packages of a suite as a tar file. Sources are given in full: the host's do not matter to the guest."""
    argv = ["mmdebstrap", "--mode=auto", "--variant=minbase", "--architectures=amd64", f"--include={','.join(wanted)}",
            "--aptopt=Acquire::Retries \"3\"", "--aptopt=APT::Install-Recommends \"false\"",
            "--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
            f"--customize-hook={recipe}/customize.sh \"$1\" {newer_kernels(suite)}".rstrip()]
    return sources(argv, suite, tar)


def newer_kernels(suite: str) -> str:
    """The part of the release that has its kernel, when it is another one."""
    return "" if suite == release(suite) else f"{release(suite)}-{suite}"


def sources(argv: list[str], suite: str, tar: pathlib.Path) -> list[str]:
    if KEYRING.exists():
        argv = [*argv, f"--keyring={KEYRING}"]
    name = release(suite)
    argv = [*argv, name, str(tar), f"deb {MIRROR} {name} main", f"deb {SECURITY} {name}-security main"]
    return argv if suite == name else [*argv, f"deb {MIRROR} {newer_kernels(suite)} main"]


def private(argv: list[str]) -> list[str]:
    """For root: in namespaces of its own, so that mounts and helpers end with a killed build. For users, mmdebstrap
    does that itself."""
    unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
    if os.geteuid() == 0 and subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode == 0:
        return [*unshare, *argv]
    return argv


def as_owner() -> list[str]:
    """A prefix under which files may be given to any user: nothing for root, a user namespace for others."""
    return [] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--map-auto", "--"]


#
# Initial RAM disk
#


def modules_needed(files: dict[str, pathlib.Path], builtin: set[str]) -> list[str]:
    """MODULES and what they depend on, each after its dependencies."""
    order: list[str] = []

    def add(name: str) -> None:
        if name in builtin or name in order:
            return
        if name not in files:
            raise LabError(f"the kernel has no module {name}")
        for dependency in module_depends(read_module(files[name])):
            add(dependency)
        order.append(name)

    for name in MODULES:
        # Newer kernels have no crc32c_generic: it is part of the library that ext4 depends on.
        if name != "crc32c_generic" or name in files:
            add(name)
    return order


def read_module(path: pathlib.Path) -> bytes:
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data


def module_depends(data: bytes) -> list[str]:
    """A module names its dependencies in a string of its own, so depmod is not needed."""
    match = re.search(rb"\0depends=([^\0]*)\0", data)
    return [name.replace("-", "_") for name in match[1].decode().split(",") if name] if match else []


def module_name(path: str) -> str:
    return pathlib.Path(path).name.split(".ko")[0].replace("-", "_")


def make_initrd(boot: pathlib.Path) -> bytes:
    tree = next(path for top in ("lib/modules", "usr/lib/modules") for path in boot.glob(f"{top}/*"))
    files = {module_name(str(path)): path for path in tree.rglob("*.ko*")}
    builtin = {module_name(line) for line in (tree / "modules.builtin").read_text(encoding="ascii").splitlines()}
    order = modules_needed(files, builtin)
    busybox = next(path for path in boot.glob("**/bin/busybox"))
    content = {"init": (VM / "image" / "init").read_bytes(), "busybox": busybox.read_bytes(),
               "modules.order": "".join(f"{name}.ko\n" for name in order).encode()}
    content.update({f"{name}.ko": read_module(files[name]) for name in order})
    return cpio.archive(content)
