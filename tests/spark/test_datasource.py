"""format("reactive"): Spark's tasks read a flow and write into one."""

import asyncio
import json
import logging
import ssl
import threading
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trustme
from pyspark import errors

import reactive_aio as rx
from reactive_aio._core.hosts import is_loopback
from reactive_aio.errors import AlreadySubscribed
from reactive_aio.spark import (
    UnencryptedAddress,
    UnsupportedDataFrame,
    WriteFailed,
    activate,
    register,
    serve_flow,
    serve_writes,
)
from reactive_aio.spark.datasource.flow_server import ServedFlow, encode_rows
from reactive_aio.spark.datasource.wire_protocol import Client, Refused
from reactive_aio.spark.datasource.write_server import ServedWrites
from reactive_aio.testing.probes import SubscriberProbe

from .conftest import wait_for_elements, wait_until
from .test_column_values import OF_NOTHING, plain, table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from reactive_aio import Flow

# On one loop: what differs between loops is anyio's, and a micro-batch takes its time.
ONE_LOOP = pytest.mark.asyncio(loop_factories=["asyncio"])
pytestmark = [pytest.mark.spark, pytest.mark.timeout(180), ONE_LOOP]

SCHEMA = "id long, name string"


@pytest.fixture(scope="module", autouse=True)
def registered(spark: "SparkSession") -> None:
    register(spark)


@pytest.fixture(autouse=True)
async def no_thread_is_left() -> AsyncIterator[None]:
    yield
    await wait_until(
        lambda: not [each for each in threading.enumerate() if "reactive" in each.name]
    )


class Pulled:
    """A flow of rows that counts its requests and elements."""

    def __init__(self, rows: int) -> None:
        self.requested = 0
        self.sent = 0
        self.cancelled = 0
        source = rx.range(rows).map(lambda number: (number, f"n{number}"))
        self.flow: Flow[tuple[int, str]] = (
            source.do_on_request(self._request).do_on_next(self._send).do_on_cancel(self._cancel)
        )

    def _request(self, n: int) -> None:
        self.requested += n

    def _send(self, _: object) -> None:
        self.sent += 1

    def _cancel(self) -> None:
        self.cancelled += 1


async def in_thread(spark: "SparkSession", work: Callable[[], Any]) -> Any:
    """Run *work* on a thread on which the session is active."""

    def run() -> Any:
        activate(spark)
        return work()

    return await asyncio.to_thread(run)


async def failure(spark: "SparkSession", work: Callable[[], Any]) -> str:
    """Return the message of Spark's error; PySpark calls the JVM for it, so on the thread."""

    def run() -> str:
        with pytest.raises(errors.PySparkException) as raised:
            work()
        return str(raised.value)

    return str(await in_thread(spark, run))


async def let_loop_run() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


# -- spark.read --------------------------------------------------------------------------------
def loaded(spark: "SparkSession", served: ServedFlow, **options: object) -> "DataFrame":
    reader = spark.read.format("reactive").options(**served.options)
    return reader.options(**{key: str(value) for key, value in options.items()}).load()


@pytest.mark.thorough
async def test_a_flow_is_read_to_its_end_under_demand(spark: "SparkSession") -> None:
    pulled = Pulled(25)
    async with serve_flow(pulled.flow, SCHEMA) as served:
        rows = await in_thread(spark, lambda: loaded(spark, served, maxRows=10).collect())
        assert [tuple(row) for row in rows] == [(number, f"n{number}") for number in range(25)]
        assert pulled.requested == 30, "ten at a time"


@pytest.mark.thorough
async def test_a_query_that_needs_few_rows_cancels_the_flow(spark: "SparkSession") -> None:
    pulled = Pulled(10**9)
    async with serve_flow(pulled.flow, SCHEMA) as served:
        rows = await in_thread(spark, lambda: loaded(spark, served, maxRows=10).limit(3).collect())
        assert len(rows) == 3
        await wait_until(lambda: pulled.cancelled == 1)
        assert pulled.sent < 1_000_000, "the pipe between Spark and its worker holds a few thousand"


async def test_a_flow_that_fails_fails_the_query(spark: "SparkSession") -> None:
    async with serve_flow(rx.error(ValueError("oh no")), SCHEMA) as served:
        words = await failure(spark, lambda: loaded(spark, served).collect())
        assert "the served flow failed: ValueError('oh no')" in words


async def test_a_row_that_does_not_fit_fails_the_query(spark: "SparkSession") -> None:
    flow = rx.range(6).map(lambda number: (number if number < 5 else "x", "y"))
    async with serve_flow(flow, SCHEMA) as served:
        words = await failure(spark, lambda: loaded(spark, served, maxRows="2").collect())
        assert "serve_flow: row 5 (counted from 0) does not fit the schema: column 'id' of" in words
        assert "is not a whole number" in words


async def test_values_of_every_type_arrive_unchanged(spark: "SparkSession") -> None:
    unfit = {"struct with a name twice", "collated string", "geometry", "geography", *OF_NOTHING}

    def rows() -> tuple[Any, list[Any]]:
        df = table(spark).drop(*unfit)
        return df.schema, df.collect()

    schema, expected = await in_thread(spark, rows)
    async with serve_flow(rx.from_iterable(expected), schema) as served:
        found = await in_thread(spark, lambda: loaded(spark, served).collect())
    for name in schema.names:
        assert [plain(row[name]) for row in found] == [plain(row[name]) for row in expected], name


# -- spark.readStream --------------------------------------------------------------------------
class Reading:
    """A streaming query over a served flow, with the rows of each micro-batch."""

    def __init__(self, spark: "SparkSession", served: ServedFlow, path: Path, rows: int) -> None:
        self.batches: dict[int, list[int]] = {}
        self.go = threading.Semaphore(1_000_000)
        self.fail_at: int | None = None
        self._spark = spark
        reader = spark.readStream.format("reactive").options(**served.options)
        stream = reader.option("maxRows", str(rows)).load()
        self._writer = stream.writeStream.foreachBatch(self._take).option(
            "checkpointLocation", str(path / "checkpoint")
        )

    def _take(self, df: "DataFrame", batch: int) -> None:
        self.go.acquire()
        self.batches[batch] = sorted(row.id for row in df.collect())
        if batch == self.fail_at:
            raise RuntimeError("a sink that fails")

    def start(self, *, to_the_end: bool = True) -> Any:
        writer = self._writer.trigger(availableNow=True) if to_the_end else self._writer
        return writer.start()

    def run(self) -> None:
        """Run the query to its end. On a busy machine, Spark's patience with a worker may end."""
        for last in (False, False, True):
            try:
                self.start().awaitTermination()
            except errors.StreamingQueryException as error:
                if last or "worker failed to connect back" not in str(error):
                    raise
            else:
                break


@pytest.mark.thorough
async def test_a_streaming_query_requests_exactly_what_it_reads(
    spark: "SparkSession", tmp_path: Path
) -> None:
    pulled = Pulled(10**9)
    async with serve_flow(pulled.flow, SCHEMA) as served:
        reading = await in_thread(spark, lambda: Reading(spark, served, tmp_path, 100))
        reading.go = threading.Semaphore(2)
        query = await in_thread(spark, lambda: reading.start(to_the_end=False))
        await wait_until(lambda: len(reading.batches) == 2, 60)
        await wait_until(
            lambda: pulled.requested == 300, 60
        )  # the third micro-batch waits in its sink
        assert pulled.sent == 300
        assert served.pending_rows <= 200, "the first batch has been committed"
        assert reading.batches == {0: [*range(100)], 1: [*range(100, 200)]}
        reading.go.release(1000)
        await asyncio.to_thread(query.stop)
    assert pulled.cancelled == 1


@pytest.mark.thorough
async def test_an_available_now_query_ends_with_the_flow(
    spark: "SparkSession", tmp_path: Path
) -> None:
    pulled = Pulled(25)
    async with serve_flow(pulled.flow, SCHEMA) as served:
        reading = await in_thread(spark, lambda: Reading(spark, served, tmp_path, 10))
        await in_thread(spark, reading.run)
        assert [len(rows) for rows in reading.batches.values()] == [10, 10, 5]


@pytest.mark.thorough
async def test_a_restarted_query_reads_every_row(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("py4j.clientserver"), "disabled", True)
    pulled = Pulled(30)
    async with serve_flow(pulled.flow, SCHEMA) as served:
        reading = await in_thread(spark, lambda: Reading(spark, served, tmp_path, 10))
        reading.fail_at = 1
        with pytest.raises(errors.StreamingQueryException, match="a sink that fails"):
            await in_thread(spark, reading.run)
        assert reading.batches == {0: [*range(10)], 1: [*range(10, 20)]}
        again = await in_thread(spark, lambda: Reading(spark, served, tmp_path, 10))
        await in_thread(spark, again.run)
        assert again.batches == {1: [*range(10, 20)], 2: [*range(20, 30)]}
        assert pulled.sent == 30


@pytest.mark.thorough
async def test_a_checkpoint_needs_a_flow_of_the_same_name(
    spark: "SparkSession", tmp_path: Path
) -> None:
    async with serve_flow(Pulled(10).flow, SCHEMA, name="numbers") as served:
        reading = await in_thread(spark, lambda: Reading(spark, served, tmp_path, 10))
        await in_thread(spark, reading.run)
    async with serve_flow(Pulled(10).flow, SCHEMA) as served:
        reading = await in_thread(spark, lambda: Reading(spark, served, tmp_path, 10))
        with pytest.raises(errors.StreamingQueryException, match="is of another flow"):
            await in_thread(spark, reading.run)
    rest = Pulled(25).flow.skip(10)
    async with serve_flow(rest, SCHEMA, name="numbers", first=10) as served:
        reading = await in_thread(spark, lambda: Reading(spark, served, tmp_path, 10))
        await in_thread(spark, reading.run)
        assert reading.batches == {1: [*range(10, 20)], 2: [*range(20, 25)]}


@pytest.mark.thorough
async def test_a_flow_that_fails_fails_the_streaming_query_after_its_rows(
    spark: "SparkSession", tmp_path: Path
) -> None:
    flow = Pulled(15).flow.concat_with(rx.error(ValueError("oh no")))
    async with serve_flow(flow, SCHEMA) as served:
        reading = await in_thread(spark, lambda: Reading(spark, served, tmp_path, 10))
        with pytest.raises(errors.StreamingQueryException, match="oh no"):
            await in_thread(spark, reading.run)
        assert sum(len(rows) for rows in reading.batches.values()) == 15


# -- df.write ----------------------------------------------------------------------------------
async def numbers(spark: "SparkSession", rows: int, partitions: int) -> "DataFrame":
    return await asyncio.to_thread(
        lambda: spark.range(0, rows, 1, partitions).selectExpr("id", "concat('n', id) as name")
    )


@pytest.mark.thorough
async def test_written_rows_arrive_under_demand(spark: "SparkSession") -> None:
    """Rule 1.1."""
    df = await numbers(spark, 100, 4)
    async with serve_writes(rows="tuple", batch=8) as served:
        probe = SubscriberProbe[Any](0).subscribed_to(served.rows)
        writing = asyncio.create_task(served.write(df))
        probe.request(3)
        await wait_for_elements(probe, 3)
        await let_loop_run()
        assert len(probe.elements) == 3
        probe.request(1000)
        await probe.end()
        await writing
        assert probe.is_completed
        assert sorted(probe.elements) == [(number, f"n{number}") for number in range(100)]


async def test_each_write_completes_a_flow(spark: "SparkSession") -> None:
    async with serve_writes(rows="tuple") as served:
        for rows, partitions in ((10, 2), (0, 1), (5, 1)):
            df = await numbers(spark, rows, partitions)
            writing = asyncio.create_task(served.write(df))
            found = await served.rows.to_list()
            await writing
            assert len(found) == rows


@pytest.mark.thorough
async def test_rows_without_columns_are_counted(spark: "SparkSession") -> None:
    df = await asyncio.to_thread(lambda: spark.range(0, 6, 1, 2).select())
    async with serve_writes(rows="tuple") as served:
        writing = asyncio.create_task(served.write(df))
        assert await served.rows.to_list() == [()] * 6
        await writing

        def write() -> None:
            df.write.format("reactive").options(**served.options).mode("append").save()

        with pytest.raises(errors.PySparkException, match="without columns has no number of rows"):
            await in_thread(spark, write)
    async with serve_writes(rows="batch") as served:
        writing = asyncio.create_task(served.write(df))
        batches = await served.rows.to_list()
        assert [(each.num_rows, each.num_columns) for each in batches] == [(3, 0), (3, 0)]
        await writing


@pytest.mark.thorough
async def test_two_concurrent_writes_are_two_flows(spark: "SparkSession") -> None:
    one, other = await numbers(spark, 30, 2), await numbers(spark, 20, 2)
    async with serve_writes(rows="tuple", batch=4) as served:
        writing = [asyncio.create_task(served.write(df)) for df in (one, other)]
        found = [len(await served.rows.to_list()), len(await served.rows.to_list())]
        await asyncio.gather(*writing)
        assert sorted(found) == [20, 30]


async def test_one_subscriber_at_a_time(spark: "SparkSession") -> None:
    async with serve_writes() as served:
        first = SubscriberProbe[Any](1).subscribed_to(served.rows)
        with pytest.raises(AlreadySubscribed, match="one subscriber at a time"):
            await served.rows.first()
        first.cancel()


async def test_cancelling_fails_the_job(spark: "SparkSession") -> None:
    df = await numbers(spark, 100_000, 4)
    async with serve_writes(batch=10) as served:
        writing = asyncio.create_task(served.write(df))
        assert len(await served.rows.take(5).to_list()) == 5
        with pytest.raises(
            errors.PySparkException, match="the subscriber of the flow has cancelled"
        ):
            await writing


@pytest.mark.thorough
async def test_cancelling_the_writer_fails_the_flow(spark: "SparkSession") -> None:
    df = await numbers(spark, 100_000, 4)
    async with serve_writes(batch=10) as served:
        probe = SubscriberProbe[Any](5).subscribed_to(served.rows)
        writing = asyncio.create_task(served.write(df))
        await wait_for_elements(probe, 5)
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        await probe.end()
        assert isinstance(probe.error, WriteFailed)


async def test_a_job_that_fails_fails_the_flow(spark: "SparkSession") -> None:
    df = await asyncio.to_thread(lambda: spark.range(0, 10, 1, 2).selectExpr("1 div (id - 7) as x"))
    async with serve_writes() as served:
        writing = asyncio.create_task(served.write(df))
        with pytest.raises(WriteFailed):
            await served.rows.to_list()
        with pytest.raises(errors.PySparkException, match="DIVIDE_BY_ZERO"):
            await writing


@pytest.mark.thorough
@pytest.mark.parametrize("is_read_at_once", [True, False])
@pytest.mark.parametrize(
    "query", ["select interval '1-2' year to month", "select raise_error('x')"]
)
async def test_a_write_that_fails_before_a_task_connects_fails_the_next_flow(
    spark: "SparkSession", query: str, is_read_at_once: bool
) -> None:
    df = await asyncio.to_thread(spark.sql, query)
    async with serve_writes(rows="tuple") as served:
        writing = asyncio.create_task(served.write(df))
        if not is_read_at_once:
            await asyncio.wait([writing])
        with pytest.raises(WriteFailed, match="the write has failed"):
            await served.rows.to_list()
        with pytest.raises(errors.PySparkException):
            await writing
        writing = asyncio.create_task(served.write(await numbers(spark, 3, 1)))
        assert len(await served.rows.to_list()) == 3, "one write, one failure"
        await writing


@pytest.mark.thorough
async def test_a_write_that_its_subscriber_has_cancelled_fails_no_other_flow(
    spark: "SparkSession",
) -> None:
    df = await numbers(spark, 100_000, 4)
    async with serve_writes(batch=10) as served:
        writing = asyncio.create_task(served.write(df))
        assert len(await served.rows.take(5).to_list()) == 5
        rows = asyncio.create_task(served.rows.to_list())
        with pytest.raises(errors.PySparkException):
            await writing
        await let_loop_run()
        assert not rows.done()
        await served.write(await numbers(spark, 3, 1))
        assert len(await rows) == 3


@pytest.mark.parametrize("wrong", [None, 5])
async def test_what_is_not_a_dataframe_fails_the_write_and_its_flow(wrong: Any) -> None:
    async with serve_writes() as served:
        writing = asyncio.create_task(served.write(wrong))
        with pytest.raises(WriteFailed, match=r"needs a pyspark\.sql\.DataFrame, got (None|5)"):
            await served.rows.to_list()
        with pytest.raises(UnsupportedDataFrame):
            await writing


async def test_a_write_of_spark_itself_that_fails_at_once_fails_the_flow(
    spark: "SparkSession",
) -> None:
    async with serve_writes() as served:
        rows = asyncio.create_task(served.rows.to_list())
        await let_loop_run()

        def write() -> None:
            writer = spark.sql("select raise_error('x')").write.format("reactive")
            writer.options(**served.options).mode("append").save()

        with pytest.raises(errors.PySparkException):
            await in_thread(spark, write)
        with pytest.raises(WriteFailed, match=r"see what df\.write raises"):
            await rows


async def test_values_of_every_type_are_written_unchanged(spark: "SparkSession") -> None:
    unfit = {"struct with a name twice", "geometry", "geography", *OF_NOTHING}
    df = await asyncio.to_thread(lambda: table(spark).drop(*unfit))
    expected = await asyncio.to_thread(df.collect)
    async with serve_writes() as served:
        writing = asyncio.create_task(served.write(df))
        found = await served.rows.to_list()
        await writing
    for name in expected[0].__fields__:
        assert [plain(row[name]) for row in found] == [plain(row[name]) for row in expected], name


# -- a task that runs twice --------------------------------------------------------------------
class Attempt:
    """A task's side of a write, chunk by chunk."""

    def __init__(self, served: ServedWrites, partition: int) -> None:
        from pyspark.sql.types import LongType, StructField, StructType

        self.schema = StructType([StructField("id", LongType())])
        self.client = Client(
            served.options, "push", partition=partition, job="j", batch=0, stream=False,
            durable=False, schema=self.schema.json(),
        )  # fmt: skip
        self.client.receive_message()

    def send(self, *rows: int) -> bool:
        """Send a chunk of rows unless it was received before; return whether it was sent."""
        is_new = bool(self.client.ask(digest=str(rows))["send"])
        if is_new:
            self.client.send(encode_rows([(row,) for row in rows], self.schema))
        return is_new

    def end(self) -> None:
        self.client.ask(end=True)
        self.die()

    def die(self) -> None:
        self.client.__exit__(None, None, None)


async def test_chunks_of_a_second_attempt_are_not_received_again(spark: "SparkSession") -> None:
    async with serve_writes(rows="tuple") as served:
        rows = asyncio.create_task(served.rows.to_list())

        def tasks() -> list[bool]:
            first, beside = Attempt(served, 0), Attempt(served, 0)
            taken = [first.send(1, 2), beside.send(1, 2), beside.send(3), first.send(3)]
            first.die()
            again = Attempt(served, 0)
            taken += [again.send(1, 2), again.send(3), again.send(4)]
            again.end()
            beside.die()
            with Client(
                served.options, "commit", job="j", batch=0, stream=False, durable=False
            ) as client:
                client.receive_message()
            return taken

        assert await asyncio.to_thread(tasks) == [True, False, True, False, False, False, True]
        assert await rows == [(1,), (2,), (3,), (4,)]


async def test_an_attempt_with_other_rows_fails_the_flow(spark: "SparkSession") -> None:
    async with serve_writes(rows="tuple") as served:
        probe = SubscriberProbe[Any](100).subscribed_to(served.rows)

        def tasks() -> None:
            first, again = Attempt(served, 0), Attempt(served, 0)
            try:
                first.send(1, 2)
                again.send(2, 1)
            finally:
                first.die()
                again.die()

        with pytest.raises(Refused, match="with other rows than before"):
            await asyncio.to_thread(tasks)
        await probe.end()
        assert isinstance(probe.error, WriteFailed)
        assert probe.elements == [(1,), (2,)]


# -- df.writeStream ----------------------------------------------------------------------------
def written_stream(spark: "SparkSession", served: ServedWrites, path: Path) -> Callable[[], None]:
    files = path / "files"
    if not files.exists():
        files.mkdir()
        for number in range(3):
            rows = range(number * 10, number * 10 + 10)
            (files / f"{number}.json").write_text(
                "\n".join(json.dumps({"id": row}) for row in rows)
            )
    stream = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).json(str(files))
    writer = stream.writeStream.format("reactive").options(**served.options)
    writer = writer.option("checkpointLocation", str(path / "checkpoint"))

    def run() -> None:
        writer.trigger(availableNow=True).start().awaitTermination()

    return run


async def test_a_streaming_query_commits_what_was_processed(
    spark: "SparkSession", tmp_path: Path
) -> None:
    commits = tmp_path / "checkpoint" / "commits"
    async with serve_writes(rows="tuple", numbered=True) as served:
        run = await in_thread(spark, lambda: written_stream(spark, served, tmp_path))
        probe = SubscriberProbe[Any](10).subscribed_to(served.rows)
        writing = asyncio.create_task(in_thread(spark, run))
        await wait_for_elements(probe, 10)
        await let_loop_run()
        assert len(probe.elements) == 10
        assert not await asyncio.to_thread((commits / "0").exists), "one more row must be requested"
        probe.request(21)
        await writing
        assert [batch for batch, _ in probe.elements] == [0] * 10 + [1] * 10 + [2] * 10
        assert {row for _, row in probe.elements} == {(number,) for number in range(30)}
        probe.cancel()


async def test_a_restarted_query_does_not_repeat_received_rows(
    spark: "SparkSession", tmp_path: Path
) -> None:
    async with serve_writes(rows="tuple") as served:
        run = await in_thread(spark, lambda: written_stream(spark, served, tmp_path))
        probe = SubscriberProbe[Any](1000).subscribed_to(served.rows)
        await in_thread(spark, run)
        assert len(probe.elements) == 30

        def forget() -> None:
            """Remove Spark's own commit, as if it had died before it."""
            for name in ("2", ".2.crc"):
                (tmp_path / "checkpoint" / "commits" / name).unlink()

        await asyncio.to_thread(forget)
        run = await in_thread(spark, lambda: written_stream(spark, served, tmp_path))
        await in_thread(spark, run)
        assert len(probe.elements) == 30
        probe.cancel()


# -- authentication ----------------------------------------------------------------------------
async def test_a_client_without_the_token_is_not_answered() -> None:
    from pyspark.sql.types import StructType

    async with serve_flow(rx.just((1,)), StructType(), token="right") as served:
        assert served.address.startswith("127.0.0.1:")

        def ask(token: str) -> str:
            with Client({"address": served.address, "token": token}, "schema") as client:
                return str(client.receive_message()["schema"])

        with pytest.raises(Refused, match="does not know this token"):
            await asyncio.to_thread(ask, "wrong")
        assert "struct" in await asyncio.to_thread(ask, "right")


async def test_a_missing_option_is_named() -> None:
    with pytest.raises(Refused, match="needs the option 'address'"):
        Client({}, "schema")


# -- other machines ------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def tls(authority: trustme.CA, tmp_path: Path) -> dict[str, Any]:
    """The arguments for a server whose certificate is for 127.0.0.1."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    issued: Any = authority.issue_cert("127.0.0.1")
    issued.configure_cert(context)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return {"ssl": context, "ca": tmp_path / "ca.pem"}


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::", "a.name.test"])
@pytest.mark.parametrize("serve", [partial(serve_flow, rx.empty(), "n long"), serve_writes])
async def test_nothing_crosses_the_network_unencrypted_unless_allowed(
    host: str, serve: Callable[..., Any]
) -> None:
    with pytest.raises(
        UnencryptedAddress, match=r"unencrypted\. Give ssl=.*allow_unencrypted=True"
    ):
        async with serve(host=host):
            pass


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
async def test_loopback_needs_no_certificate(host: str) -> None:
    assert is_loopback(host)


async def test_an_unencrypted_address_may_be_allowed() -> None:
    async with serve_writes(host="0.0.0.0", allow_unencrypted=True) as served:
        assert served.options.keys() == {"address", "token"}


async def test_an_authority_needs_a_certificate() -> None:
    with pytest.raises(TypeError, match="ca is for ssl="):
        async with serve_writes(ca="ca.pem"):
            pass


@pytest.mark.thorough
async def test_rows_and_token_travel_encrypted(spark: "SparkSession", tls: dict[str, Any]) -> None:
    async with serve_flow(rx.range(9).map(lambda n: (n, "x")), SCHEMA, **tls) as served:
        flow_of = served
        assert await in_thread(spark, lambda: loaded(spark, flow_of).count()) == 9
        plain_client = {"address": served.address, "token": served.token}

        def ask_unencrypted() -> None:
            with Client(plain_client, "schema") as client:
                client.receive()

        with pytest.raises((Refused, OSError)):
            await asyncio.to_thread(ask_unencrypted)
    async with serve_writes(rows="tuple", **tls) as written:
        writing = asyncio.create_task(written.write(await asyncio.to_thread(spark.range, 9)))
        assert sorted(await written.rows.to_list()) == [(n,) for n in range(9)]
        await writing


async def test_a_client_checks_the_certificate(tls: dict[str, Any], tmp_path: Path) -> None:
    other = trustme.CA().cert_pem
    await asyncio.to_thread(other.write_to_path, tmp_path / "ca.pem")
    async with serve_writes(**tls) as served:
        with pytest.raises(Refused, match=r"certificate of 127\.0\.0\.1:\d+ is not accepted"):
            await asyncio.to_thread(Client, served.options, "schema")
