"""The state of the data source, without Spark and without a socket."""

import pytest

from reactive_aio.spark.datasource.replay_log import ReplayLog, RowsUnavailable
from reactive_aio.spark.datasource.task_attempts import TaskAttempts


def filled(first: int, bound: int, rows: int) -> ReplayLog:
    log = ReplayLog(first, bound)
    log.add([*range(first, first + rows)])
    return log


def test_rows_that_have_arrived_are_not_missing() -> None:
    log = ReplayLog(0, 100)
    assert log.missing(0, 10) == 10
    log.add([*range(4)])
    assert log.missing(0, 10) == 6
    assert log.end_of(0, 10) == 4
    assert log.missing(4, 10) == 10
    log.is_done = True
    assert log.missing(4, 10) == 0


def test_uncommitted_rows_can_be_read_again() -> None:
    log = filled(0, 100, 10)
    assert log.read(2, 5) == [2, 3, 4]
    assert log.read(2, 5) == [2, 3, 4]
    log.commit(5)
    assert log.first == 5
    assert log.read(5, 10) == [5, 6, 7, 8, 9]
    log.commit(3)
    assert log.first == 5, "a repeated commit"


def test_at_most_the_capacity_is_held_and_half_of_it_per_micro_batch() -> None:
    log = ReplayLog(0, 10)
    assert log.missing(0, 1000) == 5
    log.add([*range(5)])
    assert log.missing(0, 1000) == 0
    assert log.missing(5, 1000) == 5
    log.add([*range(5, 10)])
    assert log.missing(10, 1000) == 0, "ten are held, and none of them is committed"
    log.commit(5)
    assert log.missing(10, 1000) == 5


def test_dropped_and_future_rows_are_refused() -> None:
    log = filled(20, 100, 10)
    log.commit(25)
    with pytest.raises(RowsUnavailable, match="committed and dropped"):
        log.read(24, 26)
    with pytest.raises(RowsUnavailable, match="has sent 30"):
        log.missing(31, 1)


def test_chunks_are_known_by_partition_from_any_attempt() -> None:
    attempts, key = TaskAttempts(), ("j", 0)
    attempts.digests(key, 1).append("a")
    assert attempts.digests(key, 1) == ["a"]
    assert not attempts.digests(key, 2)
    assert not attempts.digests(("j", 1), 1)


def test_a_micro_batch_is_committed_once_if_its_query_has_a_durable_name() -> None:
    attempts = TaskAttempts()
    attempts.commit(("q", 3), is_durable=True)
    assert attempts.is_committed(("q", 3))
    assert attempts.is_committed(("q", 2))
    assert not attempts.is_committed(("q", 4))
    attempts.commit(("unknown", 3), is_durable=False)
    assert not attempts.is_committed(("unknown", 3))


def test_one_job_at_a_time_is_current() -> None:
    attempts = TaskAttempts()
    assert attempts.select(("a", 0))
    assert attempts.select(("a", 0))
    assert not attempts.select(("b", 0))
    attempts.commit(("a", 0), is_durable=False)
    assert attempts.select(("b", 0))


def test_a_cancelled_job_is_refused_also_after_spark_has_aborted_it() -> None:
    attempts, key = TaskAttempts(), ("j", 0)
    attempts.select(key)
    attempts.digests(key, 0).append("a")
    attempts.refuse_current()
    assert attempts.is_refused(key)
    assert attempts.select(("other", 0)), "the next job becomes current"
    attempts.abort(key, is_repeated=False)
    assert attempts.is_refused(key), "a task of it may still be on its way"
    assert not attempts.digests(key, 0), "it begins from the start"


def test_chunks_of_an_aborted_micro_batch_are_remembered() -> None:
    attempts, key = TaskAttempts(), ("q", 7)
    attempts.select(key)
    attempts.digests(key, 0).append("a")
    attempts.abort(key, is_repeated=True)
    assert attempts.digests(key, 0) == ["a"]


def test_the_number_of_refused_jobs_is_limited() -> None:
    attempts = TaskAttempts()
    for number in range(1001):
        attempts.select((str(number), 0))
        attempts.refuse_current()
    assert not attempts.is_refused(("0", 0))
    assert attempts.is_refused(("1000", 0))
