"""A PostgreSQL server of a test, on a socket in a folder of its own: no port is open."""

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

_NOT_ROOT = "postgres"  # the user that the package has made: the server refuses to run as root


def _programs() -> Path:
    """Return where the programs are; Debian keeps those of the server off the path."""
    found = shutil.which("pg_ctl")
    if found is not None:
        return Path(found).parent
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl"))
    assert installed, "PostgreSQL is needed: apt-get install postgresql"
    return installed[-1].parent


@contextmanager
def postgres() -> Generator[dict[str, Any], None, None]:
    """Run a server; yield the arguments of ``asyncpg.connect``."""
    user: dict[str, Any] = {}
    if os.getuid() == 0:
        user = {"user": _NOT_ROOT, "group": _NOT_ROOT, "extra_groups": []}
    with TemporaryDirectory(prefix="postgres-") as folder:
        if user:
            shutil.chown(folder, _NOT_ROOT, _NOT_ROOT)
        with _server(folder, user):
            # The server ignores the password; without one, the client would look for a file.
            yield {"host": folder, "user": "tests", "database": "postgres", "password": "none"}


@contextmanager
def _server(folder: str, user: dict[str, Any]) -> Generator[None, None, None]:
    programs, data = _programs(), f"{folder}/data"

    def run(program: str, *arguments: str) -> None:
        command = [str(programs / program), "--pgdata", data, *arguments]
        untyped: Any = subprocess.run
        ran = untyped(command, capture_output=True, check=False, cwd="/", **user)
        assert ran.returncode == 0, ran.stderr.decode()

    run("initdb", "--username=tests", "--auth=trust", "--no-sync")
    options = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
    run("pg_ctl", "start", "--wait", "--log", f"{folder}/log", "--options", options)
    try:
        yield
    finally:
        run("pg_ctl", "stop", "--mode=immediate")
