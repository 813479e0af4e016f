"""A batch ingestion that dies goes on where it was."""

import asyncio
import io
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from rich.console import Console

from reactive_aio._core.demand import UNBOUNDED
from reactive_aio.delivery import deliveries
from reactive_aio.spark import (
    Checkpoint,
    CheckpointMismatch,
    CheckpointStore,
    ModeUnavailable,
    PlanIdentity,
    Progress,
    ProgressBar,
    from_dataframe,
)
from reactive_aio.spark.checkpoint import DirectoryStore
from reactive_aio.testing.probes import SubscriberProbe
from tests.harness.outages import Lacking

from .conftest import Trace, wait_for_elements, wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reactive_aio.spark.read_mode import ReadMode

pytestmark = pytest.mark.spark
ONE_LOOP = pytest.mark.asyncio(loop_factories=["asyncio"])
IDENTITY = PlanIdentity("a query", "an input", "partitions 4")


@pytest.fixture
def mode() -> "ReadMode":
    return "arrow"


# -- the directory ---------------------------------------------------------------------------------
def test_a_new_directory_has_no_partitions(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "new" / "one")
    assert isinstance(store, CheckpointStore)
    assert not store.load(IDENTITY)
    for partition in (3, 0, 3):
        store.commit(IDENTITY, partition)
    assert DirectoryStore(tmp_path / "new" / "one").load(IDENTITY) == {0, 3}


@pytest.mark.parametrize("cut", [b"1", b"12", b"12\n"])
def test_a_line_that_a_crash_has_cut_off_is_dropped(tmp_path: Path, cut: bytes) -> None:
    store = DirectoryStore(tmp_path)
    store.load(IDENTITY)
    store.commit(IDENTITY, 0)
    [file] = tmp_path.iterdir()
    file.write_bytes(file.read_bytes() + cut)
    expected = {0, 12} if cut.endswith(b"\n") else {0}
    assert store.load(IDENTITY) == expected
    store.commit(IDENTITY, 2)
    assert store.load(IDENTITY) == {*expected, 2}


COMMITS = """
import sys
from pathlib import Path

from reactive_aio.spark import PlanIdentity
from reactive_aio.spark.checkpoint import DirectoryStore

identity = PlanIdentity("a query", "an input", "partitions 4")
for partition in (10, 12):
    DirectoryStore(Path(sys.argv[1])).commit(identity, partition)
"""


def test_a_commit_that_a_full_disk_has_cut_off_fails_and_is_no_other_number(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    store.load(IDENTITY)
    [file] = tmp_path.iterdir()
    room = file.stat().st_size + len("10\n1")
    command = [sys.executable, "-c", COMMITS, str(tmp_path)]
    lacking = Lacking(file_size=room)
    ran = subprocess.run(command, preexec_fn=lacking, capture_output=True, text=True, check=False)
    assert f"File too large: '{file}'" in ran.stderr
    store.commit(IDENTITY, 3)
    assert store.load(IDENTITY) == {10, 3}


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("query", "the query is another one"),
        ("input", "the input has changed"),
        ("layout", r"divided otherwise \(partitions 4; now other\)"),
    ],
)
def test_what_differs_is_named(tmp_path: Path, part: str, words: str) -> None:
    store = DirectoryStore(tmp_path)
    store.load(IDENTITY)
    parts = {"query": IDENTITY.query, "input": IDENTITY.input, "layout": IDENTITY.layout}
    other = PlanIdentity(**{**parts, part: "other"})
    assert other.key != IDENTITY.key
    with pytest.raises(CheckpointMismatch, match=f"{words}.*delete that one"):
        store.load(other)


@pytest.mark.parametrize("content", [b"", b"{}\n", b"x\n", b"[1]\n"])
def test_another_file_is_refused(tmp_path: Path, content: bytes) -> None:
    store = DirectoryStore(tmp_path)
    store.load(IDENTITY)
    [file] = tmp_path.iterdir()
    file.write_bytes(content)
    with pytest.raises(CheckpointMismatch, match="is not a checkpoint"):
        store.load(IDENTITY)


def test_what_differs_is_shown_without_the_rest(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    store.load(PlanIdentity("", "", "partitions 4, parallelism 2, Spark 4.3"))
    with pytest.raises(CheckpointMismatch, match=r"otherwise \(parallelism 2; now parallelism 8\)"):
        store.load(PlanIdentity("", "", "partitions 4, parallelism 8, Spark 4.3"))


def test_two_subscriptions_may_create_a_directory_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync, other = os.fsync, DirectoryStore(tmp_path / "new")
    is_first = iter([True])

    def fsync_late(number: int) -> None:
        if next(is_first, False):  # the draft of the first one is written, and has no name yet
            assert not other.load(IDENTITY)
            other.commit(IDENTITY, 3)
        fsync(number)

    monkeypatch.setattr("os.fsync", fsync_late)
    store = DirectoryStore(tmp_path / "new")
    assert store.load(IDENTITY) == {3}
    store.commit(IDENTITY, 1)
    assert other.load(IDENTITY) == {1, 3}
    assert [file.name for file in (tmp_path / "new").iterdir()] == ["partitions.jsonl"]


@pytest.mark.parametrize("has_links", [True, False])
def test_a_file_system_may_have_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_links: bool
) -> None:
    def link(source: object, target: object) -> None:
        raise PermissionError

    if not has_links:
        monkeypatch.setattr("os.link", link)
    store = DirectoryStore(tmp_path)
    assert not store.load(IDENTITY)
    assert [file.name for file in tmp_path.iterdir()] == ["partitions.jsonl"]


class Half:
    def load(self, identity: PlanIdentity) -> Collection[int]:
        return ()


class Asynchronous(Half):
    async def commit(self, identity: PlanIdentity, partition: int) -> None: ...


class Greedy(Half):
    def commit(self, identity: PlanIdentity) -> None: ...


PLACES: dict[str, tuple[object, str]] = {
    "a number": (5, r"checkpoint= must be a directory .*, not 5 \(int\)"),
    "nothing": (Checkpoint(cast("Any", None)), r"must be a directory .*, not None \(NoneType\)"),
    "half a store": (Half(), r"object with the methods load and commit, not .* \(Half\)"),
    "a class": (Greedy, r"object with the methods load and commit, not Greedy \(type\)"),
    "bytes": (b"/tmp/x", "must be a"),
    "coroutines": (Asynchronous(), r"checkpoint.commit must be a plain function.*on a thread"),
    "other arguments": (Greedy(), r"checkpoint.commit is called with 2 arguments.*takes 1"),
    "an address": ("s3://x", r"'s3://x' is not a local directory.*CheckpointStore"),
    "a file": (__file__, "test_checkpoint.py' is a file, and must be a directory"),
    "no name": ("", r"checkpoint='' names no directory.*'\.'"),
    "a version that is a number": (
        Checkpoint("x", cast("Any", 5)),
        "snapshot must be a str.*not 5",
    ),
    "a version without a name": (Checkpoint("x", ""), "snapshot='' names no version"),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_place_that_keeps_nothing_is_refused_when_the_flow_is_made(
    spark: "SparkSession", name: str
) -> None:
    place, words = PLACES[name]
    with pytest.raises((TypeError, ValueError), match=words):
        from_dataframe(spark.range(9), checkpoint=cast("Any", place))


# -- resuming --------------------------------------------------------------------------------------
class Database:
    """A sink that upserts, and counts how often each row was written. It may fail."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fails_after: int | None = None
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("create table rows (id integer primary key, writes integer)")

    async def write(self, rows: list[tuple[int]]) -> None:
        await asyncio.to_thread(self._write, rows)

    def _write(self, rows: list[tuple[int]]) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.executemany(
                "insert into rows values (?, 1) on conflict do update set writes = writes + 1", rows
            )
            if self.fails_after is not None:
                self.fails_after -= len(rows)
                if self.fails_after < 0:
                    raise ConnectionError("the database is gone")  # and nothing is committed

    def writes(self) -> dict[int, int]:
        with closing(sqlite3.connect(self.path)) as connection:
            return dict(connection.execute("select id, writes from rows").fetchall())


@pytest.fixture
def numbers(spark: "SparkSession", tmp_path: Path) -> "DataFrame":
    """1,000 rows in ten partitions, from files."""
    path = str(tmp_path / "numbers")
    spark.range(0, 1000, 1, 2).write.parquet(path)
    return spark.read.parquet(path).repartition(10)


def committed(folder: Path) -> set[int]:
    return {int(line) for line in (folder / "partitions.jsonl").read_text().splitlines()[1:]}


def committed_is(folder: Path, expected: set[int]) -> Callable[[], Any]:
    async def check() -> bool:
        return await asyncio.to_thread(committed, folder) == expected

    return check


@ONE_LOOP
async def test_only_uncommitted_partitions_are_computed_again(
    numbers: "DataFrame", tmp_path: Path
) -> None:
    database = await asyncio.to_thread(Database, tmp_path / "db")
    checkpoint = tmp_path / "checkpoint"

    def build() -> Any:
        return from_dataframe(numbers, rows="tuple", checkpoint=checkpoint)

    flow = deliveries(await asyncio.to_thread(build), limit=400)
    done = set[int]()
    for _ in range(5):
        database.fails_after = 250
        with pytest.raises(ConnectionError):
            await flow.buffer(50).ack_after(database.write).run()
        before, done = done, await asyncio.to_thread(committed, checkpoint)
        assert before <= done
        if len(done) > 7:
            break
    database.fails_after = None
    await flow.buffer(50).ack_after(database.write).run()
    assert await asyncio.to_thread(committed, checkpoint) == {*range(10)}
    writes = await asyncio.to_thread(database.writes)
    assert sorted(writes) == [*range(1000)]
    assert sum(count > 1 for count in writes.values()) < 1000, "committed ones came once"
    await flow.ack_after(database.write).run()
    assert await asyncio.to_thread(database.writes) == writes, "nothing is left to do"


@ONE_LOOP
async def test_progress_counts_the_partitions_that_are_not_computed_again(
    numbers: "DataFrame", tmp_path: Path
) -> None:
    reports, written = list[Progress](), list[Any]()
    lines = io.StringIO()
    bar = ProgressBar("numbers", console=Console(file=lines))

    def report(progress: Progress) -> None:
        reports.append(progress)
        bar(progress)

    def build() -> Any:
        checkpoint = tmp_path / "checkpoint"
        return from_dataframe(numbers, rows="batch", checkpoint=checkpoint, progress=report)

    def write(batch: Any) -> None:
        if len(written) == 4:
            raise ConnectionError
        written.append(batch)

    flow = deliveries(await asyncio.to_thread(build), limit=2)
    with pytest.raises(ConnectionError):
        await flow.ack_after(write).run()
    assert (reports[-1].partitions, reports[-1].resumed) == (10, 0)
    done = await asyncio.to_thread(committed, tmp_path / "checkpoint")
    assert done
    await flow.ack_after(written.append).run()
    last = reports[-1]
    assert (last.resumed, last.partitions, last.done) == (len(done), 10 - len(done), 10 - len(done))
    assert last.rows == sum(batch.num_rows for batch in written[4:])
    line = f"numbers: {last.done}/{last.partitions} partitions  {len(done)} resumed"
    assert lines.getvalue().splitlines()[-1].startswith(line)


@ONE_LOOP
async def test_a_partition_is_committed_when_its_last_row_is_acknowledged(
    spark: "SparkSession", tmp_path: Path
) -> None:
    def build() -> Any:
        df = spark.range(0, 6, 1, 3)  # of two rows each
        return from_dataframe(df, rows="tuple", checkpoint=tmp_path, ordered=False, batch=1)

    flow = await asyncio.to_thread(build)
    probe = SubscriberProbe[Any](6).subscribed_to(flow)
    await wait_for_elements(probe, 6)
    by_row = {delivery.value[0]: delivery for delivery in probe.elements}
    for row in (5, 0, 3):
        by_row[row].ack()
    assert not await asyncio.to_thread(committed, tmp_path)
    by_row[4].ack()
    await wait_until(committed_is(tmp_path, {2}))
    by_row[2].nack(ValueError("not done"))
    by_row[1].ack()
    await wait_until(committed_is(tmp_path, {2, 0}))
    probe.cancel()


@ONE_LOOP
async def test_some_partitions_of_a_job_are_committed_and_the_others_computed_again(
    trace: Trace, tmp_path: Path
) -> None:
    def make(spark: "SparkSession") -> "DataFrame":
        return spark.range(0, 80, 1, 8).where("id < 50 or id >= 60")  # partition 5 is empty

    first = await trace(make, checkpoint=tmp_path, batch=4)
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(first.flow)
    await wait_for_elements(probe, 70)
    by_row = {delivery.value.id: delivery for delivery in probe.elements}
    for row in (*range(10), *range(21, 30), *range(60, 70)):
        by_row[row].ack()
    await wait_until(committed_is(tmp_path, {0, 5, 6}))
    probe.cancel()
    assert sorted(await first.partitions()) == [1, 1, 2, 4]
    by_row[20].ack()  # late, but it was stored
    await wait_until(committed_is(tmp_path, {0, 2, 5, 6}))

    second = await trace(make, checkpoint=tmp_path, batch=4)
    probe = SubscriberProbe[Any](UNBOUNDED).subscribed_to(second.flow)
    await wait_for_elements(probe, 40)
    for delivery in probe.elements:
        delivery.ack()
    assert (await probe.end())[-1] == "|"
    rows = [delivery.value.id for delivery in probe.elements]
    assert rows == [*range(10, 20), *range(30, 50), *range(70, 80)]
    assert sorted(await second.partitions()) == [1, 1, 2]
    assert await asyncio.to_thread(committed, tmp_path) == {*range(8)}


@ONE_LOOP
async def test_a_partition_is_committed_while_the_others_of_its_job_wait_for_demand(
    trace: Trace, tmp_path: Path
) -> None:
    traced = await trace(lambda spark: spark.range(0, 80, 1, 8), checkpoint=tmp_path)
    probe = SubscriberProbe[Any](10).subscribed_to(traced.flow)
    for read in (10, 20, 30, 50):
        await wait_for_elements(probe, read)
        for delivery in probe.elements:
            if not delivery.is_settled:
                delivery.ack()
        await wait_until(committed_is(tmp_path, {*range(read // 10)}))
        probe.request({10: 10, 20: 10, 30: 20, 50: 1}[read])
    assert max(await traced.partitions()) > 1
    probe.cancel()


@ONE_LOOP
async def test_a_flow_without_operators_completes_when_everything_is_committed(
    spark: "SparkSession", tmp_path: Path
) -> None:
    def build() -> Any:
        df = spark.range(0, 20, 1, 5).where("id < 4 or id > 11")  # partitions 1 and 2 are empty
        return from_dataframe(df, checkpoint=tmp_path)

    async for delivery in await asyncio.to_thread(build):
        delivery.ack()
    assert await asyncio.to_thread(committed, tmp_path) == {*range(5)}


class Memory:
    """A store of the user's own. It may fail."""

    def __init__(self) -> None:
        self.partitions: dict[str, set[int]] = {}
        self.error: Exception | None = None

    def load(self, identity: PlanIdentity) -> Collection[int]:
        return self.partitions.get(identity.key, set())

    def commit(self, identity: PlanIdentity, partition: int) -> None:
        if self.error is not None:
            raise self.error
        self.partitions.setdefault(identity.key, set()).add(partition)


@ONE_LOOP
async def test_a_store_of_the_user_keeps_several_plans(spark: "SparkSession") -> None:
    store = Memory()

    def build(stop: int) -> Any:
        return from_dataframe(spark.range(0, stop, 1, 2), rows="tuple", checkpoint=store)

    async def read(stop: int) -> int:
        flow = await asyncio.to_thread(build, stop)
        return await deliveries(flow).ack_after(lambda row: row).count()

    assert [await read(stop) for stop in (8, 9, 8)] == [8, 9, 0]
    assert [*store.partitions.values()] == [{0, 1}, {0, 1}]


@ONE_LOOP
@pytest.mark.parametrize("is_direct", [True, False])
async def test_a_commit_that_fails_fails_the_flow(
    spark: "SparkSession", *, is_direct: bool
) -> None:
    store = Memory()
    store.error = OSError("the disk is full")

    def build() -> Any:
        return from_dataframe(spark.range(0, 8, 1, 2), rows="tuple", checkpoint=store)

    async def read(flow: Any) -> None:
        if not is_direct:
            await deliveries(flow).ack_after(lambda row: row).run()
            return
        async for delivery in flow:
            delivery.ack()

    flow = await asyncio.to_thread(build)
    with pytest.raises(OSError, match="the disk is full"):
        await read(flow)


WRONG_LOADS: dict[str, tuple[Callable[[], object], str]] = {
    "text": (lambda: ["0"], r"collection of int, and returned a collection with '0' \(str\)"),
    "nothing": (lambda: None, r"collection of int, and returned None \(NoneType\)"),
    "a coroutine": (lambda: asyncio.sleep(0), r"checkpoint.load returned .*, which nothing awaits"),
}


@pytest.mark.parametrize("name", WRONG_LOADS)
def test_a_store_must_load_numbers(spark: "SparkSession", name: str) -> None:
    result, words = WRONG_LOADS[name]

    class Store(Memory):
        def load(self, identity: PlanIdentity) -> Any:
            return result()

    flow = from_dataframe(spark.range(8), checkpoint=Store())
    with pytest.raises(TypeError, match=words):
        asyncio.run(flow.run())


def test_a_store_must_commit_before_it_returns(spark: "SparkSession") -> None:
    class Store(Memory):
        def commit(self, identity: PlanIdentity, partition: int) -> Any:
            return asyncio.sleep(0)

    flow = deliveries(from_dataframe(spark.range(8), checkpoint=Store()))
    with pytest.raises(TypeError, match=r"checkpoint.commit returned .*, which nothing awaits"):
        asyncio.run(flow.ack_after(lambda row: row).run())


def test_only_partitions_can_be_resumed(spark: "SparkSession", tmp_path: Path) -> None:
    with pytest.raises(ModeUnavailable, match=r"only mode='arrow' can.*in mode 'rows': requested"):
        from_dataframe(spark.range(9), mode="rows", checkpoint=tmp_path)
