"""Servers for tests: one Redis, one PostgreSQL and one NATS for all of them.

::

    async def test_something(redis_server: RedisServer, postgres_server: PostgresServer) -> None:
        Redis.from_url(redis_server.database())
        await asyncpg.connect(postgres_server.database())     # a new, empty one

Each is started for the first test that needs it, in a temporary folder, and listens at a Unix
socket there (NATS: at a free port). It is stopped in the end. The tests of tests/recipes share a
worker (`tests.harness.groups`), and so these servers.

Without a server, such a test is skipped with the name of the package to install; in CI (where the
variable CI is set) it fails.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final, NoReturn

import pytest

STARTED_WITHIN: Final = 60.0
STOPPED_WITHIN: Final = 20.0
NUMBERS: Final = count(1)


def unavailable(program: str, package: str) -> NoReturn:
    """Skip a test since *program* is missing; fail it in CI."""
    what = f"{program} is not installed: apt install {package}"
    if os.environ.get("CI"):
        pytest.fail(f"{what}; in CI that is a failure", pytrace=False)
    pytest.skip(what)


def find(program: str, package: str, *folders: Path) -> str:
    """The path of a program of a Debian package."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", *map(str, folders)])
    return shutil.which(program, path=path) or unavailable(program, package)


@contextmanager
def folder(prefix: str) -> Generator[Path]:
    """A folder with a short path, as that of a Unix socket has to be."""
    place = Path(tempfile.mkdtemp(prefix=f"{prefix}-"))
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextmanager
def running(
    command: list[str], place: Path, is_ready: Callable[[], bool], **options: Any
) -> Generator[None]:
    """A server that runs, and has answered once."""
    log = place / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=place, stdin=subprocess.DEVNULL, stdout=file, stderr=file, **options
        )
    try:
        deadline = time.monotonic() + STARTED_WITHIN
        while not is_ready():
            if process.poll() is not None or time.monotonic() > deadline:
                shown = log.read_text(errors="replace")[-2000:]
                pytest.fail(f"{command[0]} does not start:\n{shown}", pytrace=False)
            time.sleep(0.02)
        yield
    finally:
        process.send_signal(signal.SIGINT)  # PostgreSQL would wait for its clients at SIGTERM
        try:
            process.wait(STOPPED_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def answers(path: Path) -> bool:
    """Whether a server accepts connections at a Unix socket."""
    with socket.socket(socket.AF_UNIX) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
        return True


# -- Redis -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class RedisServer:
    """A running Redis."""

    path: Path

    def database(self) -> str:
        """An empty database: its address."""
        return f"unix://{self.path}?db={next(NUMBERS)}"


@contextmanager
def redis_running() -> Generator[RedisServer]:
    """Start a Redis, and stop it in the end."""
    program = find("redis-server", "redis-server")
    with folder("redis") as place:
        path = place / "socket"
        options = {"port": "0", "unixsocket": str(path), "dir": str(place)}
        options |= {"save": "", "databases": "10000"}
        command = [program, *(word for name in options for word in (f"--{name}", options[name]))]
        with running(command, place, lambda: answers(path)):
            yield RedisServer(path)


# -- PostgreSQL ------------------------------------------------------------------------------------
@dataclass(frozen=True)
class PostgresServer:
    """A running PostgreSQL."""

    folder: Path
    _psql: Callable[[str], None]

    def database(self) -> str:
        """A new, empty database: its address."""
        name = f"test_{next(NUMBERS)}"
        self._psql(f"create database {name}")
        return f"postgresql://postgres@/{name}?host={self.folder}"


def unprivileged(place: Path) -> Mapping[str, Any]:
    """Options of a process that must not be root; *place* becomes its folder."""
    if os.geteuid() != 0:
        return {}
    import pwd  # which Windows lacks

    user = pwd.getpwnam("postgres")  # Debian's package has made it
    os.chown(place, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextmanager
def postgres_running() -> Generator[PostgresServer]:
    """Start a PostgreSQL, and stop it in the end.

    It need not survive a power failure, and so never syncs.
    """
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    initdb, server, psql, pg_isready = (
        find(name, "postgresql", *folders) for name in ("initdb", "postgres", "psql", "pg_isready")
    )
    with folder("postgres") as place:
        user, data = unprivileged(place), place / "data"
        create = ["--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync"]
        made = subprocess.run(
            [initdb, "--pgdata", str(data), "--locale=C", *create],
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
            **user,
        )
        if made.returncode:
            pytest.fail(f"initdb has failed: {made.stderr}", pytrace=False)
        settings = [
            "listen_addresses=",
            "fsync=off",
            "synchronous_commit=off",
            "full_page_writes=off",
        ]
        options = [word for setting in settings for word in ("-c", setting)]
        command = [server, "-D", str(data), "-k", str(place), *options]

        def run_sql(statement: str) -> None:
            connection = [psql, "--host", str(place), "--username", "postgres", "--quiet"]
            subprocess.run([*connection, "--command", statement], check=True)

        def is_ready() -> bool:
            # It accepts connections earlier, and refuses them while it starts up.
            asked = subprocess.run([pg_isready, "--quiet", "--host", str(place)], check=False)
            return asked.returncode == 0

        with running(command, place, is_ready, **user):
            yield PostgresServer(place, run_sql)


# -- NATS ------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class NatsServer:
    """A running NATS with JetStream. Tests use subjects of their own."""

    url: str

    def subject(self) -> str:
        """A name that no other test uses."""
        return f"subject-{next(NUMBERS)}"


@contextmanager
def nats_running() -> Generator[NatsServer]:
    """Start a NATS, and stop it in the end."""
    program = find("nats-server", "nats-server")
    with folder("nats") as place, ExitStack() as stack:
        command = [program, "-js", "-sd", str(place / "store"), "-a", "127.0.0.1", "-p", "-1"]
        ports = ["--ports_file_dir", str(place)]

        def address() -> list[str]:
            return [each.read_text() for each in place.glob("*.ports")]

        stack.enter_context(running([*command, *ports], place, lambda: any(address())))
        yield NatsServer(str(json.loads(address()[0])["nats"][0]))


# -- fixtures --------------------------------------------------------------------------------------
@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One Redis for all tests."""
    with redis_running() as server:
        yield server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL for all tests."""
    with postgres_running() as server:
        yield server


@pytest.fixture(scope="session")
def nats_server() -> Iterator[NatsServer]:
    """One NATS for all tests."""
    with nats_running() as server:
        yield server
