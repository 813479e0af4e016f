"""The parts of the data source that decide: without Spark, without a socket."""

import pytest

from reactive_aio.spark.datasource.ledger import Ledger
from reactive_aio.spark.datasource.replay import Replay, ReplayLost


def filled(first: int, bound: int, rows: int) -> Replay:
    replay = Replay(first, bound)
    replay.want(first, rows)
    for row in range(first, first + rows):
        replay.add(row)
    return replay


def test_exactly_what_is_missing_is_requested() -> None:
    replay = Replay(0, 100)
    assert replay.want(0, 10) == 10
    assert replay.want(0, 10) == 0, "it has been requested"
    for row in range(4):
        replay.add(row)
    assert replay.until(0, 10) == 4
    assert replay.want(4, 10) == 4, "six are on their way"


def test_what_is_not_committed_is_read_again_as_it_was() -> None:
    replay = filled(0, 100, 10)
    assert replay.read(2, 5) == [2, 3, 4]
    assert replay.read(2, 5) == [2, 3, 4]
    replay.commit(5)
    assert replay.first == 5
    assert replay.read(5, 10) == [5, 6, 7, 8, 9]
    replay.commit(3)
    assert replay.first == 5, "a commit that comes twice"


def test_no_more_is_kept_than_the_bound_and_half_of_it_is_given_at_a_time() -> None:
    replay = Replay(0, 10)
    assert replay.want(0, 1000) == 5
    for row in range(5):
        replay.add(row)
    assert replay.enough(0, 1000)
    assert replay.want(5, 1000) == 5
    for row in range(5, 10):
        replay.add(row)
    assert replay.want(10, 1000) == 0, "ten are held, and none is committed"
    replay.commit(5)
    assert replay.want(10, 1000) == 5


def test_rows_that_are_gone_or_never_were_are_refused() -> None:
    replay = filled(20, 100, 10)
    replay.commit(25)
    with pytest.raises(ReplayLost, match="committed and dropped"):
        replay.read(24, 26)
    with pytest.raises(ReplayLost, match="has sent 30"):
        replay.want(31, 1)


def test_a_piece_is_taken_once_whoever_brings_it() -> None:
    job = Ledger().job(("j", 0))
    assert not job.has(1, 0)
    job.take(1, "a")
    assert job.has(1, 0)
    assert not job.differs(1, 0, "a")
    assert job.differs(1, 0, "b")
    assert not job.has(1, 1)
    assert not job.has(2, 0)


def test_a_micro_batch_is_over_once_if_the_query_is_known() -> None:
    ledger = Ledger()
    ledger.commit(("q", 3), known=True)
    assert ledger.is_over(("q", 3))
    assert ledger.is_over(("q", 2))
    assert not ledger.is_over(("q", 4))
    ledger.commit(("unknown", 3), known=False)
    assert not ledger.is_over(("unknown", 3))


def test_one_job_at_a_time_is_served() -> None:
    ledger = Ledger()
    assert ledger.serve(("a", 0))
    assert ledger.serve(("a", 0))
    assert not ledger.serve(("b", 0))
    ledger.commit(("a", 0), known=False)
    assert ledger.serve(("b", 0))


def test_the_job_under_way_is_refused_when_its_reader_has_gone_until_spark_gave_it_up() -> None:
    ledger, key = Ledger(), ("j", 0)
    ledger.serve(key)
    ledger.job(key).take(0, "a")
    ledger.drop()
    assert ledger.is_refused(key)
    assert ledger.serve(("other", 0)), "who waits is served next"
    ledger.abort(key, again=False)
    assert not ledger.is_refused(key)
    assert not ledger.job(key).has(0, 0), "it begins anew"


def test_what_was_taken_of_a_micro_batch_is_known_when_it_comes_again() -> None:
    ledger, key = Ledger(), ("q", 7)
    ledger.serve(key)
    ledger.job(key).take(0, "a")
    ledger.abort(key, again=True)
    assert ledger.job(key).has(0, 0)


def test_no_more_refused_jobs_are_remembered_than_are_of_use() -> None:
    ledger = Ledger()
    for number in range(1001):
        ledger.serve((str(number), 0))
        ledger.drop()
    assert not ledger.is_refused(("0", 0))
    assert ledger.is_refused(("1000", 0))
