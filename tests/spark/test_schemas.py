"""The schemas that flows are written with are checked before the first row."""

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.types import LongType, NullType, StructField, StructType

import reactive_aio as rx
from reactive_aio.spark import map_flow, serve_flow, to_dataframe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

VOID = StructType([StructField("v", NullType(), nullable=False)])
WRONG: list[tuple[Any, type[Exception], str]] = [
    (None, TypeError, r"schema must be a StructType or its text, .* not None"),
    (["id"], TypeError, r"schema must be a StructType or its text, .* not \['id'\] \(list\)"),
    (LongType(), TypeError, r"schema must be a StructType or its text, .* \(LongType\)"),
    ("s char(3)", ValueError, r"the schema has a char or a varchar.*; take string"),
    ("s array<varchar(3)>", ValueError, r"the schema has a char or a varchar.*; take string"),
    (
        "i long, m interval month",
        ValueError,
        r"column 'm' of type interval month cannot become Arrow",
    ),
    (VOID, ValueError, r"column 'v' .* NOT NULL, and of the type void"),
    (StructType([StructField("s", VOID)]), ValueError, r"column 'v' .* NOT NULL"),
]


@pytest.fixture(params=["classic", "connect"])
def session(
    request: pytest.FixtureRequest, spark: "SparkSession", remote: "SparkSession"
) -> "SparkSession":
    return spark if request.param == "classic" else remote


async def serve(schema: Any) -> None:
    async with serve_flow(rx.just((1,)), schema):
        pass


@pytest.mark.parametrize(("schema", "kind", "words"), WRONG)
def test_a_schema_that_cannot_be_written_is_refused(
    session: "SparkSession", schema: Any, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=f"map_flow: {words}"):
        map_flow(session.range(3), lambda rows: rows, schema)
    with pytest.raises(kind, match=f"to_dataframe: {words}"):
        asyncio.run(to_dataframe(rx.just((1,)), session, schema))
    with pytest.raises(kind, match=f"serve_flow: {words}"):
        asyncio.run(serve(schema))


@pytest.mark.thorough
def test_columns_of_workers_need_different_names(session: "SparkSession") -> None:
    with pytest.raises(ValueError, match=r"map_flow: .* two columns named 'id'.*toDF"):
        map_flow(session.range(3), lambda rows: rows, "id long, name string, id long")
    both = map_flow(session.range(1), lambda rows: rows.map(lambda _: (1, 2)), "id long, ID long")
    assert [tuple(row) for row in both.collect()] == [(1, 2)]
