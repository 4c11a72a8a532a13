# SPDX-License-Identifier: LGPL-2.1-or-later
"""Initial RAM disks in the "newc" format, which has a header in hexadecimal digits before each file. Written here, so
that the host needs neither cpio nor root for the device nodes."""

import stat


def entry(name: str, mode: int, data: bytes = b"", device: tuple[int, int] = (0, 0)) -> bytes:
    """One file: inode, mode, owner, group, links, time, size, device of the file, device it is, name, checksum."""
    fields = (0, mode, 0, 0, 1, 0, len(data), 0, 0, *device, len(name) + 1, 0)
    head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
    return pad(head) + pad(data)


def pad(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)


def archive(files: dict[str, bytes]) -> bytes:
    """Executable files in the root directory, the mount points, and a console."""
    parts = [entry(name, stat.S_IFDIR | 0o755) for name in ("dev", "root")]
    parts.append(entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1)))
    parts += [entry(name, stat.S_IFREG | 0o755, data) for name, data in files.items()]
    parts.append(entry("TRAILER!!!", 0))
    return b"".join(parts)
