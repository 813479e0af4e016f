"""Servers for tests: one Redis, PostgreSQL, NATS, RabbitMQ, Mosquitto and Kafka for all of them.

::

    async def test_something(redis_server: RedisServer, postgres_server: PostgresServer) -> None:
        Redis.from_url(redis_server.database())
        await asyncpg.connect(postgres_server.database())     # a new, empty one

Each is started for the first test that needs it, in a temporary folder, and listens at a Unix
socket there, or at a free port. It is stopped in the end. The tests of tests/recipes and
tests/connectors share a worker (`tests.harness.groups`), and so these servers. Kafka is the mock
cluster that the library of its C client contains: a process that speaks the protocol.

Without a server, such a test is skipped with the name of the package to install; in CI (where the
variable CI is set) it fails.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import urlsplit

import pytest

from tests.harness.outages import Lacking, Proxy, proxy_of

STARTED_WITHIN: Final = 120.0
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
    command: list[str],
    place: Path,
    is_ready: Callable[[], bool],
    *,
    stop: signal.Signals = signal.SIGINT,  # PostgreSQL would wait for its clients at SIGTERM
    **options: Any,
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
        process.send_signal(stop)
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

    def proxy(self) -> AbstractAsyncContextManager[Proxy]:
        """A proxy that leads to an empty database."""
        return proxy_of(f"redis://redis/{next(NUMBERS)}", self.path)


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

    def proxy_of(self, database: str) -> AbstractAsyncContextManager[Proxy]:
        """A proxy that leads to *database*."""
        url = f"postgresql://postgres@postgres{urlsplit(database).path}?sslmode=disable"
        return proxy_of(url, self.folder / ".s.PGSQL.5432")


def unprivileged(place: Path) -> Mapping[str, Any]:
    """Options of a process that must not be root; *place* becomes its folder."""
    if os.geteuid() != 0:
        return {}
    import pwd  # which Windows lacks

    user = pwd.getpwnam("postgres")  # Debian's package has made it
    os.chown(place, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextmanager
def postgres_running(lacking: Lacking | None = None) -> Generator[PostgresServer]:
    """Start a PostgreSQL, and stop it in the end; *lacking* limits its processes.

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

        with running(command, place, is_ready, preexec_fn=lacking, **user):
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
def nats_running(*options: str) -> Generator[NatsServer]:
    """Start a NATS with *options*, and stop it in the end."""
    program = find("nats-server", "nats-server")
    with folder("nats") as place, ExitStack() as stack:
        command = [program, "-js", "-sd", str(place / "store"), "-a", "127.0.0.1", "-p", "-1"]
        ports = ["--ports_file_dir", str(place)]

        def address() -> list[str]:
            return [each.read_text() for each in place.glob("*.ports")]

        stack.enter_context(running([*command, *ports, *options], place, lambda: any(address())))
        yield NatsServer(str(json.loads(address()[0])["nats"][0]))


# -- RabbitMQ --------------------------------------------------------------------------------------
@dataclass(frozen=True)
class RabbitServer:
    """A running RabbitMQ. Tests use queues of their own."""

    url: str

    def queue(self) -> str:
        """A name that no other test uses."""
        return f"queue-{next(NUMBERS)}"


def free_port() -> int:
    """A port that nothing listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


def accepts(port: int) -> bool:
    """Whether a server accepts connections at a port."""
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def rabbit_running() -> Generator[RabbitServer]:
    """Start a RabbitMQ with the daemon that it needs, and stop both in the end."""
    folders = sorted(Path("/usr/lib/rabbitmq/lib").glob("*/sbin"), reverse=True)
    program = find("rabbitmq-server", "rabbitmq-server", *folders)
    if folders:  # the program of /usr/sbin changes to another user
        program = str(folders[0] / "rabbitmq-server")
    with folder("rabbit") as place, ExitStack() as stack:
        port, names = free_port(), str(free_port())
        (place / "plugins").write_text("[].")
        settings = {
            "HOME": str(place),
            "ERL_EPMD_PORT": names,
            "RABBITMQ_NODENAME": f"test-{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(free_port()),
            "RABBITMQ_MNESIA_BASE": str(place / "data"),
            "RABBITMQ_LOG_BASE": str(place / "logs"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_PID_FILE": str(place / "pid"),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(place / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "+S 1:1 +sbwt none",
        }
        stack.callback(subprocess.run, ["epmd", "-port", names, "-kill"], capture_output=True)
        server = running(
            [program], place, lambda: accepts(port), stop=signal.SIGTERM, env=os.environ | settings
        )
        stack.enter_context(server)
        yield RabbitServer(f"amqp://guest:guest@127.0.0.1:{port}/")


# -- Mosquitto -------------------------------------------------------------------------------------
@dataclass(frozen=True)
class MqttServer:
    """A running Mosquitto. Tests use topics of their own."""

    url: str

    def topic(self) -> str:
        """A name that no other test uses."""
        return f"topic-{next(NUMBERS)}"


@contextmanager
def mqtt_running() -> Generator[MqttServer]:
    """Start a Mosquitto, and stop it in the end."""
    program = find("mosquitto", "mosquitto")
    with folder("mqtt") as place:
        port = free_port()
        settings = f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n"
        (place / "settings").write_text(settings + "set_tcp_nodelay true\n")
        command = [program, "-c", str(place / "settings")]
        with running(command, place, lambda: accepts(port)):
            yield MqttServer(f"mqtt://127.0.0.1:{port}")


# -- Kafka -----------------------------------------------------------------------------------------
@dataclass(frozen=True)
class KafkaServer:
    """A mock cluster of Kafka with one broker. Topics are made when used, with four partitions."""

    url: str

    def topic(self) -> str:
        """A name that no other test uses."""
        return f"topic-{next(NUMBERS)}"


MOCK_CLUSTER: Final = """
import time
from pathlib import Path
from confluent_kafka import Producer

producer = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1, "log_level": 0})
[broker] = producer.list_topics(timeout=30).brokers.values()
Path("new").write_text(f"kafka://{broker.host}:{broker.port}")
Path("new").rename("address")
time.sleep(1e6)
"""


@contextmanager
def kafka_running() -> Generator[KafkaServer]:
    """Start a mock cluster of Kafka, and stop it in the end."""
    with folder("kafka") as place:
        command = [sys.executable, "-c", MOCK_CLUSTER]
        with running(command, place, (place / "address").exists, stop=signal.SIGKILL):
            yield KafkaServer((place / "address").read_text())


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


@pytest.fixture(scope="session")
def rabbit_server() -> Iterator[RabbitServer]:
    """One RabbitMQ for all tests."""
    with rabbit_running() as server:
        yield server


@pytest.fixture(scope="session")
def mqtt_server() -> Iterator[MqttServer]:
    """One Mosquitto for all tests."""
    with mqtt_running() as server:
        yield server


@pytest.fixture(scope="session")
def kafka_server() -> Iterator[KafkaServer]:
    """One mock cluster of Kafka for all tests."""
    with kafka_running() as server:
        yield server
