#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The dependencies between the rooms are those of tests/layers.txt, and each room keeps to its work.

usage: layers.py SOURCE_ROOT
"""

import os
import re
import sys

import lint

# The rooms that decide: values in, values out.
PURE = "base conf topo world policy plan sim".split()

# (rooms; files excepted; what must not be called; why). A name must be followed by "(", except the streams, which may
# not even be named.
CALLS = [
    (
        PURE,
        (),
        r"(?:v?printf|v?dprintf|puts|putchar|perror|warnx?|errx?|v?syslog|sd_journal_\w+|sd_notifyf?)\s*\("
        r"|(?:stdout|stderr)\b",
        "base to plan and sim return errors, they do not log",
    ),
    (
        PURE,
        ("src/base/time.c",),
        r"(?:clock_gettime|clock|gettimeofday|time|timespec_get|ftime)\s*\(",
        "of the rooms that decide only base/time.c reads clocks",
    ),
    (
        ["conf", "topo", "world", "policy", "plan", "sim"],
        (),
        r"time_(?:now_usec|thread_cpu_nsec)\s*\(",
        "time is a parameter here",
    ),
    (
        ["world", "plan"],
        (),
        r"(?:open|openat|openat2|creat|fopen|fdopen|freopen|read|pread|readv|write|pwrite|fread|fgets|getline|opendir"
        r"|readdir|scandir|nftw|readlink|readlinkat|stat|lstat|fstat|fstatat|access|faccessat|root_\w+|getenv|secure_getenv"
        r"|sched_getaffinity|sysconf|getpid|gettid)\s*\(",
        "world and plan do no I/O and ask the system nothing",
    ),
    (
        PURE + ["probe", "ctl", "daemon"],
        (),
        r"(?:sched_setaffinity|sched_setscheduler|sched_setattr|sched_setparam|pthread_setaffinity_np|setpriority|nice"
        r"|move_pages|migrate_pages|numa_move_pages|numa_migrate_pages|mbind|set_mempolicy|process_madvise)\s*\(",
        "only act changes the machine",
    ),
]

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"\n]*)"|<([^>\n]*)>)', re.MULTILINE)
# Comments, strings and character constants; the rest is code.
NOT_CODE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group())


def code_of(text):
    return NOT_CODE.sub(blank, text)


def read_layers(text):
    """Returns ({room: the rooms it may include}, {prefix of outside headers: the rooms that may include them})."""
    rooms, outside = {}, {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        name, colon, rest = line.partition(":")
        if not colon:
            sys.exit(f"tests/layers.txt:{number}: expected ROOM: ROOMS or <HEADERS>: ROOMS")
        name, allowed = name.strip(), rest.split()
        if name.startswith("<"):
            outside[name.strip("<>")] = allowed
            continue
        # A room may include only rooms above it, so there can be no circle.
        for other in allowed:
            if other not in rooms and other != "numaplace":
                sys.exit(f"tests/layers.txt:{number}: {other} does not stand above {name}")
        rooms[name] = allowed
    return rooms, outside


def check_includes(rooms, outside, path, text):
    room = path.split("/")[1]
    # A comment may contain the word; a string must not be blanked, because it is the name.
    bare = re.sub(r"/\*.*?\*/", blank, text, flags=re.DOTALL)
    for match in INCLUDE.finditer(bare):
        ours, theirs = match.groups()
        where = f"{path}:{lint.line_of(text, match.start())}"
        if theirs is not None:
            for prefix, allowed in outside.items():
                if theirs.startswith(prefix) and room not in allowed:
                    yield f"{where}: only {' '.join(allowed)} may include <{prefix}...>, not {room}"
            continue
        other, slash, _ = ours.partition("/")
        if not slash:
            yield f'{where}: "{ours}" must name its room: "{room}/{ours}"'
        elif other != room and other not in rooms and other != "numaplace":
            yield f'{where}: "{ours}": {other} is not a room of tests/layers.txt'
        elif other != room and other not in rooms[room]:
            yield f'{where}: {room} may include {" ".join(rooms[room]) or "no other room"}, not "{ours}"'


def check_calls(path, text):
    room = path.split("/")[1]
    code = code_of(text)
    for where, but, names, why in CALLS:
        if room not in where or path in but:
            continue
        # Not a member of a structure, and not the declaration of a function of the project with another name.
        for match in re.finditer(r"(?<![\w.>])(?:" + names + ")", code):
            found = match.group().rstrip("( ")
            yield f"{path}:{lint.line_of(code, match.start())}: {found}: {why}"


def check_rooms(rooms, existing):
    for room in sorted(existing - set(rooms)):
        yield f"src/{room} is not in tests/layers.txt"
    for room in sorted(set(rooms) - existing):
        yield f"tests/layers.txt names {room}, but there is no src/{room}"


def test_ourselves():
    rooms, outside = read_layers("a:\n b: a\n c: a b numaplace # words\n<sys/z>: c\n")
    lint.self_test(
        lambda path, text: check_includes(rooms, outside, path, text),
        [
            (("src/b/x.c", '#include "a/y.h"\n#include "b/z.h"\n#include <sys/types.h>\n'), None),
            (("src/c/x.c", '#include "numaplace/bus.h"\n#include <sys/z.h>\n'), None),
            (("src/b/x.c", '/* #include "c/y.h" */\n'), None),
            (("src/a/x.c", '\n#include "b/y.h"\n'), "src/a/x.c:2: a may include no other room"),
            (("src/b/x.c", '#  include "c/y.h"'), "b may include a, not"),
            (("src/b/x.c", '#include "numaplace/bus.h"'), "b may include a, not"),
            (("src/b/x.c", '#include "d/y.h"'), "d is not a room"),
            (("src/b/x.c", '#include "y.h"'), "must name its room"),
            (("src/b/x.c", "#include <sys/zebra.h>"), "only c may include <sys/z...>"),
        ],
    )
    lint.self_test(
        check_calls,
        [
            (("src/plan/x.c", '/* time() */ f("open("); x->read(1); snprintf(b, 1, "");'), None),
            (("src/plan/x.c", "fprintf(out, 1); plan_open(); reopen(); runtime(3); open_memstream(a, b);"), None),
            (("src/base/time.c", "clock_gettime(c, &ts);"), None),
            (("src/topo/x.c", "open(p, 0);"), None),
            (("src/act/x.c", "sched_setaffinity(1, 2, s);"), None),
            (("src/daemon/x.c", "printf(a); time_now_usec();"), None),
            (("src/base/x.c", "\n\nprintf(a);"), "src/base/x.c:3: printf: base to plan"),
            (("src/conf/x.c", "(void)fprintf(stderr, a);"), "stderr: base to plan"),
            (("src/topo/x.c", "fputs(a, stdout );"), "stdout: base to plan"),
            (("src/world/x.c", "syslog(1, a);"), "syslog: base to plan"),
            (("src/plan/x.c", "sd_journal_send(a);"), "sd_journal_send: base to plan"),
            (("src/topo/x.c", "t = time (NULL);"), "time: of the rooms that decide only base/time.c"),
            (("src/base/x.c", "clock_gettime(c, &ts);"), "clock_gettime: of the rooms that decide only base/time.c"),
            (("src/plan/x.c", "time_now_usec();"), "time_now_usec: time is a parameter"),
            (("src/plan/x.c", "if (read(fd, b, 1))"), "read: world and plan do no I/O"),
            (("src/world/x.c", "root_open(p);"), "root_open: world and plan do no I/O"),
            (("src/probe/x.c", "sched_setaffinity(1, 2, s);"), "sched_setaffinity: only act"),
        ],
    )
    lint.self_test(check_rooms, [(({"a": []}, {"a"}), None), (({"a": []}, {"a", "b"}), "src/b is not in")])
    lint.self_test(check_rooms, [(({"a": [], "b": []}, {"a"}), "there is no src/b")])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = sys.argv[1]
    test_ourselves()

    rooms, outside = read_layers(lint.read(root, "tests/layers.txt"))
    existing = {e.name for e in os.scandir(os.path.join(root, "src")) if e.is_dir()}
    problems, checked = list(check_rooms(rooms, existing)), 0
    for path in lint.walk(root, "src"):
        if not path.endswith((".c", ".h")) or path.count("/") < 2 or path.split("/")[1] not in rooms:
            continue
        text = lint.read(root, path)
        problems += check_includes(rooms, outside, path, text)
        problems += check_calls(path, text)
        checked += 1
    lint.finish(problems, checked)


main()
