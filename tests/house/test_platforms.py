"""What Windows and macOS lack is guarded: judged by the text, as no tests have run there.

A name that only some systems have is used below a condition on the system, or after one that leaves
the function, or in a module that is reached through such a condition alone (`BEHIND_A_DOOR`).
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = sorted((ROOT / "reactive_aio").rglob("*.py"))
MODULES = frozenset(["fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"])
LACKING = """
os chown fork forkpty getegid geteuid getgid getloadavg getpgid getppgid getuid killpg mkfifo nice
os openpty posix_spawn pread pwrite sched_getaffinity sched_setaffinity setgid setpgid setpriority
os set_blocking setsid setuid uname wait3 wait4
signal SIG_BLOCK SIG_UNBLOCK alarm pause pthread_kill pthread_sigmask setitimer
socket AF_UNIX SO_PEERCRED SO_REUSEPORT send_fds
faulthandler register
asyncio open_unix_connection start_unix_server
"""
NAMES = {
    (line.split()[0], name) for line in LACKING.strip().splitlines() for name in line.split()[1:]
}
"""Names that some systems lack, each with its module."""
OF_WINDOWS = frozenset(["ABRT", "BREAK", "FPE", "ILL", "INT", "SEGV", "TERM"])
"""The signals that each system has."""
BEHIND_A_DOOR = {
    "reactive_aio/_core/child_process.py": "from_process refuses Windows",
    "reactive_aio/spark/arrow/jvm_socket.py": "read_mode chooses rows where no socket is watched",
}
"""Modules that are used only where their names are there, and why."""
_CONDITION = re.compile(r"sys\.platform|os\.name|hasattr\(|getattr\(|WINDOWS")


def is_lacking(node: ast.AST) -> str | None:
    """The name that *node* uses and some systems lack."""
    if isinstance(node, ast.Import):
        return next((each.name for each in node.names if each.name in MODULES), None)
    if isinstance(node, ast.ImportFrom):
        found = (each.name for each in node.names if (node.module, each.name) in NAMES)
        return node.module if node.module in MODULES else next(found, None)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        owner, name = node.value.id, node.attr
        is_signal = owner == "signal" and name.startswith("SIG") and name[3:4].isupper()
        if (owner, name) in NAMES or (is_signal and name[3:] not in OF_WINDOWS):
            return f"{owner}.{name}"
    return None


def unguarded(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    """The line and the name of each use in *body* that depends on no condition on the system."""
    for statement in body:
        if isinstance(statement, ast.If) and _CONDITION.search(ast.unparse(statement.test)):
            if isinstance(statement.body[-1], ast.Return | ast.Raise):
                return  # what follows runs on the other systems
            continue
        parts = (getattr(statement, name, None) for name in ("body", "orelse", "finalbody"))
        blocks = [cast("list[ast.stmt]", part) for part in parts if isinstance(part, list)]
        blocks += [handler.body for handler in getattr(statement, "handlers", ())]
        inner = {id(each) for block in blocks for part in block for each in ast.walk(part)}
        for node in ast.walk(statement):
            if id(node) not in inner and (name := is_lacking(node)):
                yield getattr(node, "lineno", 0), name
        for block in blocks:
            yield from unguarded(block)


@pytest.mark.thorough
def test_what_some_systems_lack_is_guarded() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in PACKAGE
        if path.relative_to(ROOT).as_posix() not in BEHIND_A_DOOR
        for line, name in unguarded(ast.parse(path.read_text("utf-8")).body)
    ]
    assert not found, "\n".join(["use them below a condition on sys.platform:", *found])


@pytest.mark.parametrize("path", BEHIND_A_DOOR)
def test_a_module_behind_a_door_uses_such_names(path: str) -> None:
    assert [*unguarded(ast.parse((ROOT / path).read_text("utf-8")).body)], "it needs no door"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("import fcntl", ["fcntl"]),
        ("import os\nos.fork()", ["os.fork"]),
        ("def f():\n    signal.signal(signal.SIGHUP, g)", ["signal.SIGHUP"]),
        ("signal.signal(signal.SIGTERM, g)", []),
        ("if sys.platform != 'win32':\n    import resource", []),
        ("def f():\n    if sys.platform == 'win32':\n        return\n    os.getuid()", []),
        ("if hasattr(os, 'sched_getaffinity'):\n    os.sched_getaffinity(0)", []),
        ("try:\n    pass\nexcept OSError:\n    socket.socket(socket.AF_UNIX)", ["socket.AF_UNIX"]),
        ("from socket import AF_UNIX", ["AF_UNIX"]),
    ],
)
def test_the_judge_finds_what_is_unguarded(text: str, names: list[str]) -> None:
    assert [name for _, name in unguarded(ast.parse(text).body)] == names
