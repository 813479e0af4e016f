"""The private names of PySpark's Spark Connect client have the expected behavior.

When one of these tests fails, a new Spark has changed a name: `from_dataframe` then falls back to
mode "rows", and reactive_aio/spark/_internals needs an update.
"""

import atexit
import socket
from copy import copy
from threading import local
from typing import TYPE_CHECKING, Any, cast

import pytest

from reactive_aio.spark._internals import missing_connect_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def tables_of(client: Any, df: Any) -> Any:
    return client.to_table_as_iterator(df._plan.to_proto(client), df._plan.observations)


def test_the_probe_finds_everything(remote: "SparkSession") -> None:
    assert missing_connect_name(remote.range(1)) is None


def test_a_plan_is_answered_by_its_schema_and_tables(remote: "SparkSession") -> None:
    df = remote.range(0, 6, 1, 3)
    client: Any = remote.client
    found = [each for each in tables_of(client, df) if hasattr(each, "to_batches")]
    assert [table.to_pydict() for table in found] == [{"id": [n, n + 1]} for n in (0, 2, 4)]


def test_nothing_is_sent_before_the_first_response_is_requested(remote: "SparkSession") -> None:
    """So the operation has the tags of the thread at that time."""
    client: Any = copy(remote.client)
    client.thread_local = local()
    sent = list[Any]()
    make = client._execute_plan_request_with_metadata

    def noted() -> Any:
        sent.append(make())
        return sent[-1]

    client._execute_plan_request_with_metadata = noted
    found = tables_of(client, remote.range(3))
    assert sent == []
    client.add_tag("mine")
    assert len([*found]) >= 1
    assert [*sent[0].tags] == ["mine"]


def test_a_copy_of_a_client_has_tags_of_its_own(remote: "SparkSession") -> None:
    own: Any = copy(remote.client)
    own.thread_local = local()
    own.add_tag("own")
    assert own.get_tags() == {"own"}
    assert remote.getTags() == set()


def test_retries_sleep_by_a_function_that_can_be_replaced(remote: "SparkSession") -> None:
    """PySpark retries a server that is gone; a cancelled subscription does not wait for that."""
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client.core import SparkConnectClient

    plan = cast("Any", remote.range(1))._plan.to_proto(remote.client)
    with socket.socket() as closed:  # bound, but not listening
        closed.bind(("127.0.0.1", 0))
        own: Any = SparkConnectClient(f"sc://127.0.0.1:{closed.getsockname()[1]}")
        slept, patience = list[float](), own._retrying

        def retrying() -> Any:
            again = patience()
            again._sleep = slept.append
            return again

        own._retrying = retrying
        with (
            pytest.warns(match="RETRIES_EXCEEDED"),
            pytest.raises(PySparkException, match=r"refused|UNAVAILABLE"),
        ):
            next(own.to_table_as_iterator(plan, {}))
        atexit.unregister(own._on_exit)
        own.close()
    assert len(slept) >= 10
    assert sum(slept) > 300, "seconds, without the replaced function"


def test_an_interruption_returns_the_operations_it_ended(remote: "SparkSession") -> None:
    client: Any = remote.client
    assert client.interrupt_tag("an-unused-tag") == []


def test_a_session_knows_that_it_was_stopped(remote: "SparkSession") -> None:
    assert remote.is_stopped is False  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
