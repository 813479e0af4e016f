"""What is sent to the workers: pipelines by value, with errors that say what cannot be."""

import pickle
import sys
import threading
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import pytest
from pyspark import cloudpickle

from reactive_aio import Flow, RateLimit
from reactive_aio.spark import PipelineNotPicklable
from reactive_aio.spark.executors.shipping import pickle_pipeline, worker_function
from tests.executors.worker import NUMBERS, numbers, rows_of

OPTIONS = {"input_schema": NUMBERS, "output_schema": NUMBERS, "rows": "tuple", "most": 100}
client = threading.Lock()
"""Stands for a client: it cannot be pickled."""


def sent(pipeline: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """What a worker unpickles."""
    run = worker_function("map_flow", pickle_pipeline("map_flow", pipeline), OPTIONS)
    untyped: Any = cloudpickle
    return pickle.loads(untyped.dumps(run))  # type: ignore[no-any-return]


def test_a_pipeline_is_sent_with_what_it_refers_to() -> None:
    factor = 3
    limit = RateLimit(1000, per=0.001)

    async def multiplied(row: tuple[int]) -> tuple[int]:
        return (row[0] * factor,)

    def pipeline(rows: Flow[tuple[int]]) -> Flow[tuple[int]]:
        return rows.map_async(multiplied, concurrency=2, limiter=limit)

    result = sent(pipeline)(numbers(4))
    assert [row for batch in result for row in rows_of(batch)] == [(0,), (3,), (6,), (9,)]


def test_what_cannot_be_sent_is_named() -> None:
    lock = threading.Lock()

    def look(row: Any) -> Any:
        with lock:
            return row

    def pipeline(rows: Flow[Any]) -> Flow[Any]:
        return rows.map(look)

    with pytest.raises(PipelineNotPicklable) as caught:
        pickle_pipeline("map_flow", pipeline)
    message = str(caught.value)
    assert "Spark's workers: it refers to 'lock' in 'look' (lock), which cannot be" in message
    assert "map_flow.resources(open_client)" in message
    assert isinstance(caught.value.__cause__, TypeError)


def test_a_method_and_a_partial_are_searched_as_well() -> None:
    class Service:
        def __init__(self) -> None:
            self.lock = threading.Lock()

        def pipeline(self, rows: Flow[Any]) -> Flow[Any]:
            return rows

    with pytest.raises(PipelineNotPicklable, match=r"'self' \(Service\)"):
        pickle_pipeline("map_flow", Service().pipeline)

    def run(lock: object, rows: Flow[Any]) -> Flow[Any]:
        return rows

    with pytest.raises(PipelineNotPicklable, match=r"'argument 0' \(\S*lock\)"):
        pickle_pipeline("for_each_partition", partial(run, threading.Lock()))


def test_a_worker_without_the_package_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    run = sent(lambda rows: rows)
    monkeypatch.setitem(sys.modules, "reactive_aio.spark.executors.partition_run", None)
    with pytest.raises(ImportError) as caught:
        run(numbers(1))
    message = str(caught.value)
    assert "map_flow: Spark's Python worker cannot import 'reactive_aio" in message
    for remedy in ("--archives", "spark.addArtifacts", "addPyFile", "--py-files"):
        assert remedy in message


def test_a_module_of_the_user_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("shop_tools")
    exec("def look(rows):\n    return rows", module.__dict__)
    monkeypatch.setitem(sys.modules, "shop_tools", module)
    run = sent(module.look)
    monkeypatch.delitem(sys.modules, "shop_tools")
    with pytest.raises(ImportError, match="cannot import 'shop_tools'"):
        run(numbers(1))


def test_nothing_of_the_package_is_pickled_but_its_text() -> None:
    run = worker_function("map_flow", b"", {})
    untyped: Any = cloudpickle
    assert b"creactive_aio" not in untyped.dumps(run, protocol=0)
