"""The service of examples/: with a real Redis and PostgreSQL, and killed at random moments."""

import asyncio
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Final, TypeVar, cast
from urllib.request import urlopen

import asyncpg
import ingest_service
import ingest_store
import pytest
from ingest_sources import EVENTS, broker_of
from redis.asyncio import Redis

from reactive_aio.connectors import nats
from reactive_aio.delivery import BatchFailed
from tests.harness.outages import frozen
from tests.harness.servers import (
    PostgresServer,
    RedisServer,
    free_port,
    postgres_running,
    redis_running,
)

pytestmark = [pytest.mark.slow]

ROOT: Final = Path(__file__).parents[2]
PROGRAM: Final = ROOT / "examples" / "ingest_service.py"
ENRICH: Final = "tests.recipes.enrichments:moody"
LETHAL: Final = "tests.recipes.enrichments:lethal"
SECONDS: Final = 60.0

T = TypeVar("T")


@dataclass
class Place:
    """A Redis database and a PostgreSQL database, and services that use them.

    The tests are plain functions, since starting a process blocks.
    """

    redis_url: str
    postgres_url: str
    redis: Redis
    postgres: "asyncpg.Connection[asyncpg.Record]"
    runner: asyncio.Runner

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def add(self, *entries: dict[Any, Any]) -> None:
        async def add() -> None:
            for fields in entries:
                await self.redis.xadd("events", fields)

        self.run(add())

    @contextmanager
    def service(
        self, *options: str, idle: float = 0.2, enrich: str = ENRICH, source: str = ""
    ) -> "Generator[subprocess.Popen[str]]":
        where = ["--source", source or self.redis_url, "--postgres", self.postgres_url]
        options = "--idle", str(idle), *options
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), *where, "--enrich", enrich, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()

    def put_back(self, which: str, source: str = "") -> None:
        """Put dead letters back, by a call of the program in this process."""
        where = ["--source", source or self.redis_url, "--postgres", self.postgres_url]
        assert ingest_service.main([*where, "--requeue", which]) == 0

    def column(self, query: str) -> list[Any]:
        return [row[0] for row in self.run(self.postgres.fetch(query))]

    def decided(self) -> int:
        """How many ids were decided."""
        if self.column("select to_regclass('dead_letters')") == [None]:
            return 0
        return sum(
            self.column("select count(*) from events union all select count(*) from dead_letters")
        )

    def pending(self) -> int:
        """How many entries are pending, or not delivered yet."""
        groups: list[Any] = self.run(cast("Any", self.redis.xinfo_groups("events")))
        return sum(int(each["pending"]) + int(each["lag"]) for each in groups)

    def is_read(self) -> bool:
        """Whether entries were delivered to a consumer of a group."""
        groups: list[Any] = self.run(cast("Any", self.redis.xinfo_groups("events")))
        return any(each["pending"] for each in groups)

    def consumers(self) -> dict[str, int]:
        """How many entries are pending for each consumer of the group."""
        found: list[Any] = self.run(cast("Any", self.redis.xinfo_consumers("events", "ingest")))
        return {each["name"].decode(): int(each["pending"]) for each in found}

    def holds(self, process: "subprocess.Popen[str]") -> bool:
        """Whether entries are pending for the consumer of *process*."""
        names = self.consumers().items()
        return any(count for name, count in names if name.endswith(f"-{process.pid}"))

    def until(self, is_so: Callable[[], object], process: "subprocess.Popen[str] | None") -> None:
        """Wait until *is_so*, while the process runs if one is given."""
        deadline = time.monotonic() + SECONDS
        while not is_so():
            if process is not None and process.poll() is not None:
                pytest.fail("".join(process.communicate()))
            assert time.monotonic() < deadline
            self.run(asyncio.sleep(0.01))

    def is_done(self) -> bool:
        return self.decided() > 0 and not self.pending()

    def is_over(self, process: "subprocess.Popen[str]") -> bool:
        """Whether *process* has ended, or everything is done."""
        return process.poll() is not None or self.is_done()

    def until_decided(self, count: int, process: "subprocess.Popen[str]") -> None:
        self.until(lambda: self.decided() >= count, process)

    def until_all_is_done(self, process: "subprocess.Popen[str]") -> None:
        """Wait as long as ids are decided: what was in work at two crashes is done one by one."""
        while not self.is_done():
            before = self.decided()
            self.until(partial(self._is_done_or_further, before), process)

    def _is_done_or_further(self, before: int) -> bool:
        return self.decided() > before or self.is_done()


@pytest.fixture
def place(redis_server: RedisServer, postgres_server: PostgresServer) -> Iterator[Place]:
    redis_url, postgres_url = redis_server.database(), postgres_server.database()
    with asyncio.Runner() as runner:
        redis: Redis = Redis.from_url(redis_url)  # pyright: ignore[reportUnknownMemberType]
        postgres = runner.run(asyncpg.connect(postgres_url))
        yield Place(redis_url, postgres_url, redis, postgres, runner)
        runner.run(postgres.close())
        runner.run(redis.aclose())


def entry(number: int, payload: str = "") -> dict[Any, Any]:
    return {"id": f"id-{number}", "payload": payload or f"payload {number}"}


@pytest.mark.thorough
def test_each_id_is_an_event_or_a_dead_letter_once_however_often_it_is_killed(
    place: Place,
) -> None:
    kill_and_restart(place, entries=300, kills=2)


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_the_same_with_many_kills(place: Place) -> None:
    kill_and_restart(place, entries=5000, kills=12)


def kill_and_restart(place: Place, entries: int, kills: int) -> None:
    dice = random.Random(entries)
    never = add_entries(place, entries, dice)
    for killed in range(kills):
        with place.service("--batch", "20") as process:
            share = (killed + dice.random()) / (kills + 1)
            place.until_decided(round(share * entries), process)
            process.send_signal(signal.SIGKILL)
    with place.service("--batch", "20") as process:
        place.until_all_is_done(process)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err) == (0, "")
    assert "drained in" in out
    assert_each_is_decided_once(place, entries, never)


def add_entries(place: Place, entries: int, dice: random.Random) -> set[str]:
    """Add so many ids, some of them twice; return those that can never be enriched."""
    payloads = {n: dice.choice(["", "", "", "later", "never"]) for n in range(entries)}
    place.add(*(entry(n, f"{mood} {n}") for n, mood in payloads.items()))
    place.add(*(entry(n) for n in range(0, entries, 7)), {"payload": "no id"}, {"id": "empty"})
    return {f"id-{n}" for n, mood in payloads.items() if mood == "never"}


def assert_each_is_decided_once(place: Place, entries: int, never: set[str]) -> None:
    events = place.column("select id from events")
    dead = place.column("select id from dead_letters")
    assert len(events) == len(set(events))
    assert not set(events) & set(dead)
    assert {each for each in [*events, *dead] if each.startswith("id-")} == {
        f"id-{n}" for n in range(entries)
    }
    repeated = {f"id-{n}" for n in range(0, entries, 7)}
    assert never - repeated <= set(dead) - {"empty"}
    assert len(dead) <= len(never) + 2
    assert place.pending() == 0


def test_two_services_of_a_group_decide_each_id_once_when_one_is_killed(place: Place) -> None:
    kill_one_of_two(place, entries=300, kills=1)


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_the_same_with_many_entries_and_kills(place: Place) -> None:
    kill_one_of_two(place, entries=5000, kills=12)


def kill_one_of_two(place: Place, entries: int, kills: int) -> None:
    """Kill one of two services while it holds entries, and start another, except at the end."""
    dice = random.Random(entries)
    with ExitStack() as stack:

        def start() -> "subprocess.Popen[str]":
            service = place.service("--batch", "20", "--rate", "400", idle=1)
            return stack.enter_context(service)

        services = [start(), start()]
        for each in services:
            assert cast("IO[str]", each.stdout).readline().startswith("reads the stream events as ")
        never = add_entries(place, entries, dice)
        for killed in range(kills):
            share = (killed + dice.random()) / (kills + 1)
            place.until_decided(round(share * entries), services[0])
            victim = services.pop(dice.randrange(len(services)))
            place.until(partial(place.holds, victim), victim)
            victim.send_signal(signal.SIGKILL)
            if killed < kills - 1:
                services.append(start())
        [survivor] = services
        place.until_all_is_done(survivor)
        survivor.send_signal(signal.SIGTERM)
        _, err = survivor.communicate(timeout=SECONDS)
        assert (survivor.returncode, err) == (0, "")
    assert_each_is_decided_once(place, entries, never)


@pytest.mark.thorough
def test_an_entry_that_kills_its_process_is_buried_and_no_other_with_it(place: Place) -> None:
    place.add(*(entry(n, "kill" if n == 10 else "") for n in range(20)))
    kills = 0
    while True:
        with place.service("--batch", "30", "--crashes", "2", enrich=LETHAL) as process:
            place.until(partial(place.is_over, process), None)
            if process.poll() is None:
                break
            assert process.returncode == -signal.SIGKILL
            kills += 1
    rows = place.run(place.postgres.fetch("select id, reason, error from dead_letters"))
    why = "Died: 2 processes have ended while they worked on this entry alone"
    assert [tuple(row) for row in rows] == [("id-10", "crashed", why)]
    assert sorted(place.column("select id from events")) == sorted(
        f"id-{n}" for n in range(20) if n != 10
    )
    assert kills == 4, "two beside others, which it is not blamed for, and two alone"


def test_sigterm_drains_what_was_read_and_figures_are_shown(place: Place) -> None:
    place.add(*(entry(n) for n in range(200)))
    with place.service("--batch", "50", "--rate", "100", "--every", "0.1") as process:
        place.until_decided(1, process)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err) == (0, "")
    *_, report, summary = out.splitlines()
    decided = place.decided()
    assert summary == f"{decided} events, 0 dead letters, 0 decided before"
    assert report.startswith("drained in")
    assert report.endswith("0 in flight, 0 discarded, 0 unacknowledged")
    assert 0 < decided <= 200
    assert place.pending() == 200 - decided, "all that was read is done"
    if decided == 200:
        assert place.run(cast("Any", place.redis.xinfo_consumers("events", "ingest"))) == []
    assert re.search(
        r"^\d+ events, 0 dead letters, 0 decided before, [\d,]+/s, \d+ held$", out, re.M
    )


def test_what_cannot_be_enriched_is_a_dead_letter_with_its_error(place: Place) -> None:
    place.add(
        entry(1),
        entry(1, "the same id"),
        entry(2, "never"),
        {"id": "text", "payload": b"\xff\x00"},
        {"id": "nul", "payload": b"a\x00b"},
        {"id": "", "payload": "no id"},
        {"payload": "no id either"},
        {"id": "alone"},
        {"id": "id-1", "payload": ""},
    )
    with place.service() as process:
        place.until_all_is_done(process)
    rows = place.run(place.postgres.fetch("select id, payload, error from dead_letters"))
    found = {row["id"]: (row["payload"], row["error"]) for row in rows}
    assert found["id-2"] == ("never", "ValueError: it never succeeds")
    assert found["text"][0] == "\\xff\\x00"
    assert "is not UTF-8 in the field 'payload'" in found["text"][1]
    assert found["nul"][0] == "a\\x00b"
    assert "of the entry" in found["nul"][1]
    assert "has no field 'payload'" in found["alone"][1]
    without_id = sorted(payload for payload, error in found.values() if "'id'" in error)
    assert without_id == ["no id", "no id either"]
    assert place.column("select id || ': ' || enriched from events") in (
        ["id-1: PAYLOAD 1"],
        ["id-1: THE SAME ID"],
        ["id-1: "],
    )


def test_an_outage_of_the_enrichment_buries_nothing(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    up = tmp_path / "up"
    monkeypatch.setenv("UP", str(up))
    place.add(*(entry(n) for n in range(30)))
    with place.service("--batch", "10", enrich="tests.recipes.enrichments:down") as process:
        place.until(place.is_read, process)
        place.run(asyncio.sleep(1.5))  # more than the attempts of a policy take
        assert place.decided() == 0
        up.touch()
        place.add(entry(98, "refused"), entry(99, "never"), *(entry(n) for n in range(30, 60)))
        place.until_decided(61, process)
        while "id-99" not in place.column(
            "select id from dead_letters"
        ):  # what fails by itself is found while others pass
            place.add(*(entry(1000 + n) for n in range(5)))
            place.run(asyncio.sleep(0.2))
        place.until_all_is_done(process)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
    rows = place.run(place.postgres.fetch("select id, reason from dead_letters order by id"))
    assert [tuple(row) for row in rows] == [("id-98", "refused"), ("id-99", "failed")]


def test_dead_letters_have_keys_of_their_own_and_are_put_back(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    long = "x" * 5000
    place.add(entry(1), entry(2, "never"), {"id": long, "payload": "p"}, {"id": "id-3"})
    with place.service() as process:
        place.until_all_is_done(process)
    rows = place.run(place.postgres.fetch("select id, reason from dead_letters"))
    key = next(id for id, _ in rows if id.startswith("sha256:"))
    assert {tuple(row) for row in rows} == {
        ("id-2", "failed"),
        (key, "invalid"),
        ("id-3", "invalid"),
    }
    place.put_back("failed")
    assert capsys.readouterr() == ("1 dead letters were put back into events\n", "")
    place.put_back(key)
    assert place.column("select id from dead_letters") == ["id-3"]
    put_back: Any = place.run(cast("Any", place.redis.xrevrange("events", count=2)))
    assert [fields for _, fields in put_back] == [
        {b"id": long.encode(), b"payload": b"p"},
        {b"id": b"id-2", b"payload": b"never"},
    ]
    with place.service(enrich="tests.recipes.enrichments:lethal") as process:
        place.until_all_is_done(process)
    assert sorted(place.column("select id from events")) == ["id-1", "id-2"]


@contextmanager
def own_servers() -> Generator[tuple[Place, list[int], list[int]]]:
    """Servers that a test may freeze, and their processes: of Redis, of PostgreSQL."""
    with ExitStack() as stack:
        redis_server = stack.enter_context(redis_running())
        postgres_server = stack.enter_context(postgres_running())
        urls = redis_server.database(), postgres_server.database()
        with asyncio.Runner() as runner:
            made: Any = Redis
            redis = made.from_url(urls[0])
            postgres = runner.run(asyncpg.connect(urls[1]))
            place = Place(*urls, redis, postgres, runner)
            pid: int = runner.run(redis.info())["process_id"]
            postmaster = (postgres_server.folder / "data" / "postmaster.pid").read_text()
            yield place, [pid], [int(postmaster.split()[0])]
            postgres.terminate()
            runner.run(redis.aclose())


@pytest.mark.thorough
@pytest.mark.parametrize("which", ["Redis", "PostgreSQL"])
def test_a_frozen_server_is_survived_and_left(which: str) -> None:
    with own_servers() as (place, redis_processes, postgres_processes):
        place.add(*(entry(n) for n in range(2000)))
        processes = redis_processes if which == "Redis" else postgres_processes
        with place.service("--batch", "20", "--rate", "200") as process:
            place.until_decided(50, process)
            with frozen(*processes):
                time.sleep(12)
            place.until_decided(600, process)
            with frozen(*processes):
                time.sleep(1)
                process.send_signal(signal.SIGTERM)
                out, err = process.communicate(timeout=30)
        assert process.returncode == 75, out
        with place.service("--batch", "500") as process:
            place.until_all_is_done(process)
        assert place.column("select count(*) from events") == [2000]
        assert place.column("select count(*) from dead_letters") == [0]
        assert f"{which} (" in out + err


@pytest.mark.thorough
def test_one_that_is_frozen_with_the_lock_is_survived() -> None:
    with own_servers() as (place, _, _):
        place.add(*(entry(n) for n in range(500)))

        async def hold() -> Any:
            holder = await asyncpg.connect(place.postgres_url, server_settings=ingest_store.LIMITS)
            await holder.execute(f"begin; {ingest_store.LOCK}")
            return holder

        holder = place.run(hold())  # and then nothing more, as a frozen process does
        with place.service() as process:
            place.until_all_is_done(process)
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=SECONDS)
        assert process.returncode == 0
        assert len(place.column("select id from events")) == 500
        holder.terminate()


def test_connections_that_the_servers_end_cost_no_entry(place: Place) -> None:
    place.add(*(entry(n, "never" if n % 10 == 0 else "") for n in range(300)))
    others = "datname = current_database() and pid <> pg_backend_pid()"
    with place.service("--batch", "20", "--rate", "400") as process:
        for count in (1, 60, 120):
            place.until_decided(count, process)
            place.column(f"select pg_terminate_backend(pid) from pg_stat_activity where {others}")
            redis: Any = place.redis
            place.run(redis.client_kill_filter(_type="normal", skipme=True))
        place.until_all_is_done(process)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err) == (0, ""), out
    assert "PostgreSQL (--postgres) is back after " in out
    assert len(place.column("select id from events")) == 270
    assert len(place.column("select id from dead_letters")) == 30


def test_an_id_that_is_decided_stays_as_it_is(place: Place) -> None:
    place.add(entry(1), entry(2, "never"))
    with place.service() as process:
        place.until_all_is_done(process)
        place.add(entry(1, "never"), entry(2))
        place.until_all_is_done(process)
    assert place.column("select enriched from events") == ["PAYLOAD 1"]
    assert place.column("select id from dead_letters") == ["id-2"]


def test_services_of_two_groups_decide_each_id_once(place: Place) -> None:
    place.add(*(entry(n // 2, "never" if n % 3 == 0 else "") for n in range(200)))
    with place.service("--name", "a") as one, place.service("--name", "b") as other:
        place.until_decided(100, one)
        place.until_all_is_done(other)
    events = place.column("select id from events")
    dead = place.column("select id from dead_letters")
    assert sorted([*events, *dead]) == sorted(f"id-{n}" for n in range(100))


@dataclass
class Elsewhere:
    """A broker other than Redis."""

    url: str

    async def put(self, *entries: dict[str, str]) -> None:
        async with broker_of(self.url).putting_back(self.url) as put_back:
            for fields in entries:
                await put_back({name.encode(): text.encode() for name, text in fields.items()})


OTHERS = ("rabbit", "nats", "mqtt")
"""Those that a short run leaves out, since it has one that works alike."""


async def make_stream(url: str) -> None:
    async with nats.connect(url) as client:
        untyped: Any = client
        await untyped.jetstream().add_stream(name=EVENTS, subjects=[EVENTS])


@pytest.fixture(
    params=["kafka", *(pytest.param(each, marks=pytest.mark.thorough) for each in OTHERS)]
)
def elsewhere(request: pytest.FixtureRequest) -> Elsewhere:
    url: str = request.getfixturevalue(f"{request.param}_server").url
    if request.param == "nats":
        asyncio.run(make_stream(url))
    return Elsewhere(url)


def asked(port: int, path: str) -> str:
    """What a probe is answered."""
    with urlopen(f"http://127.0.0.1:{port}/{path}", timeout=10) as answer:
        return cast("bytes", answer.read()).decode()


def until_it_reads(place: Place, elsewhere: Elsewhere, process: "subprocess.Popen[str]") -> None:
    """Send an entry until it is read: MQTT drops, and RabbitMQ refuses, what nobody waits for."""

    def is_decided() -> bool:
        with suppress(BatchFailed):
            place.run(elsewhere.put(entry(0)))
        place.run(asyncio.sleep(0.2))
        return place.decided() == 1

    place.until(is_decided, process)


@pytest.mark.thorough
def test_any_broker_is_its_source_and_its_probes_answer(
    place: Place, elsewhere: Elsewhere, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    port, name = free_port(), str(tmp_path / "top")
    options = "--probes", str(port), "--socket", name
    with place.service(*options, source=elsewhere.url) as process:
        until_it_reads(place, elsewhere, process)
        others = [entry(n) for n in range(1, 20)]
        place.run(elsewhere.put(*others, entry(20, "never"), {"payload": "no id"}))
        place.until_decided(22, process)
        assert (asked(port, "alive"), asked(port, "ready")) == ("alive", "ready")
        with socket.socket(socket.AF_UNIX) as top:
            top.connect(name)
            assert top.recv(100).startswith(b"ingest: ")
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err) == (0, ""), out
    assert out.startswith(f"reads the {place_of(elsewhere)} {EVENTS}")
    assert sorted(place.column("select reason from dead_letters")) == ["failed", "invalid"]
    place.put_back("failed", elsewhere.url)
    assert capsys.readouterr() == ("1 dead letters were put back into events\n", "")
    with place.service(source=elsewhere.url, enrich=LETHAL) as process:
        place.until(lambda: "id-20" in place.column("select id from events"), process)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
    assert process.returncode == 0


def place_of(elsewhere: Elsewhere) -> str:
    kinds = {"kafka": "topic", "amqp": "queue", "nats": "subject", "mqtt": "topic"}
    return kinds[elsewhere.url.partition(":")[0]]


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_a_service_of_any_broker_that_is_killed_loses_and_doubles_nothing(
    place: Place, elsewhere: Elsewhere
) -> None:
    dice, count = random.Random(1), 0
    for _ in range(3):
        with place.service("--batch", "20", "--rate", "400", source=elsewhere.url) as process:
            if count == 0:
                until_it_reads(place, elsewhere, process)
            more = [entry(n, dice.choice(["", "never"])) for n in range(count + 1, count + 201)]
            place.run(elsewhere.put(*more))
            place.until_decided(count + dice.randrange(1, 200), process)
            process.send_signal(signal.SIGKILL)
        count += 200
    with place.service(source=elsewhere.url) as process:
        place.until_decided(count + 1, process)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    events = place.column("select id from events")
    dead = place.column("select id from dead_letters")
    assert sorted([*events, *dead]) == sorted(f"id-{n}" for n in range(count + 1))


class TestCommandLine:
    """What ends the service at once is one line."""

    def test_help(self, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            ingest_service.main(["--help"])
        assert ended.value.code == 0
        shown = capsys.readouterr().out
        for option in ("--source", "--postgres", "--batch", "--name", "--enrich", "--idle"):
            assert option in shown

    def test_a_server_that_does_not_answer(
        self, place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        missing = f"unix://{tmp_path}/no"
        assert ingest_service.main(["--source", missing, "--postgres", place.postgres_url]) == 1
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith("Redis (--source): ")

    def test_a_database_that_does_not_exist(
        self, place: Place, capsys: pytest.CaptureFixture[str]
    ) -> None:
        missing = place.postgres_url.replace("/test_", "/no_")
        assert ingest_service.main(["--source", place.redis_url, "--postgres", missing]) == 1
        [line] = capsys.readouterr().err.splitlines()
        assert line.startswith("PostgreSQL (--postgres): ")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--batch", "0"], "argument --batch: invalid int of at least 1 value: '0'"),
            (["--source", "http://x"], "it begins with the scheme of a broker: redis, rediss"),
            (["--enrich", "json:no"], "give module:function, of a coroutine function"),
            ([], "required: --source/--redis, --postgres"),
        ],
    )
    def test_wrong_options(
        self, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        where = ["--postgres", "postgresql://x", "--source", "redis://x"] if options else []
        with pytest.raises(SystemExit) as ended:
            ingest_service.main([*where, *options])
        assert ended.value.code == 2
        assert message in capsys.readouterr().err
