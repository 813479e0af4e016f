"""Values of every type, written on every way into Spark, beside what ``createDataFrame`` makes.

``python -m tests.spark.written_values`` prints the differences; it is run in several time zones.
"""

import asyncio
import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

from pyspark.sql import Row
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType

import reactive_aio as rx
from reactive_aio.spark import (
    activate,
    append_table,
    local_session,
    map_flow,
    register,
    serve_flow,
    to_dataframe,
    write_parquet,
)
from reactive_aio.spark.errors import is_connect

from .test_column_values import plain, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIVE: Final = timezone(timedelta(hours=5))
# By the type of a column: values that are taken, and those that are refused.
TAKEN: Final[dict[str, tuple[Sequence[Any], Sequence[Any]]]] = {
    "boolean": ((True, False), (1, "true")),
    "byte": ((-128, 127), (128, True, 1.0, "1")),
    "short": ((-(2**15),), (2**15, 1.5)),
    "int": ((-(2**31), 2**31 - 1), (2**31, "5", False, 1.0)),
    "long": ((-(2**63), 2**63 - 1), (2**63, Decimal(1))),
    "float": ((0.1, math.nan, math.inf, 1e300), ("1.5", True)),
    "double": ((0.1, -0.0, math.nan, -math.inf), ("1.5", Decimal(1))),
    "decimal(5,2)": (
        [Decimal(each) for each in ("1.005", "1.025", "-1.005", "1.015", "1E+2", "NaN", "1E-9")],
        (Decimal("999.995"), Decimal(1000), Decimal("Infinity"), 1.5, 1, "1"),
    ),
    "decimal(38,18)": ((Decimal("1E-19"), Decimal("12345678901234567890.5")), (Decimal(10) ** 20,)),
    "string": (
        ("é\U0001f600", "", 5, 2**70, True, False, 1.5, 1e20, b"ab", Decimal("1E+5"), [1, "a"],
         date(2024, 2, 29), {"a": None}),
        (),
    ),
    "string collate UNICODE_CI": (("x", 5), ()),
    "binary": ((b"\0\xff", bytearray(b"ab"), b""), ("ab", 5, [1])),
    "date": (
        (date(1, 1, 1), date(9999, 12, 31), datetime(2024, 2, 29, 23, 59),
         datetime(2024, 1, 1, 1, tzinfo=FIVE)),
        (5, "2024-01-01", 1.5),
    ),
    "timestamp": (
        (datetime(2024, 7, 1, 12, 0, 0, 123456), datetime(1969, 12, 31, 23, 59, 59, 999999),
         datetime(2024, 3, 31, 2, 30), datetime(2024, 1, 1, 1, tzinfo=FIVE),
         datetime(2024, 10, 27, 2, 30, fold=1)),
        (date(2024, 1, 1), 5, "2024-01-01"),
    ),
    "timestamp_ntz": (
        (datetime(2024, 3, 31, 2, 30), datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)),
        (datetime(2024, 1, 1, tzinfo=UTC), date(2024, 1, 1)),
    ),
    "interval day to second": ((timedelta(-1, 5, 7), timedelta(0)), (5, timedelta.max)),
    "interval day": ((timedelta(1, 3600),), ()),
    "void": ((None,), (1,)),
    "array<int>": (([1, None], [], (1, 2), array("i", [1, 2])), ([1.5], {1, 2}, "ab", [True])),
    "array<string>": (([b"ab", 5, True, None],), ("ab",)),
    "array<timestamp>": (([datetime(2024, 3, 31, 2, 30), None],), ([date(2024, 1, 1)],)),
    "array<decimal(5,2)>": (([Decimal("1.005"), Decimal("1.015")],), ([Decimal(1000)],)),
    "map<string,decimal(5,2)>": (
        ({"a": Decimal("1.005"), 5: None}, {}), ({None: None}, [("a", Decimal(1))]),
    ),
    "map<date,array<int>>": (({date(2024, 1, 1): [1]},), ({5: [1]}, {date(2024, 1, 1): ["x"]})),
    "struct<a:int,b:string>": (
        ((1, "x"), [1, 5], {"a": 1}, {"b": True}, Row(a=1, b="x"), {}),
        ((1,), {"a": 1, "bb": "x"}, 5, "ab", Row(a="x", b=1)),
    ),
    "struct<a:decimal(5,2),b:array<struct<c:timestamp>>>": (
        ((Decimal("1.005"), [{"c": datetime(2024, 3, 31, 2, 30)}, None]),),
        ((Decimal("1.005"), [{"d": None}]), (None, [(1,)])),
    ),
}  # fmt: skip
Values = Sequence[Any]
SAMPLE: Final = ("string", "decimal(5,2)", "timestamp", "binary")
"""Types that are always tried inside of others as well."""
NESTED: Final[list[tuple[str, Callable[[Any], Any], Callable[[Values], Values]]]] = [
    ("array", ArrayType, lambda values: [[*values], [None], []]),
    ("struct", lambda kind: StructType([StructField("a", kind)]), lambda values: [*zip(values)]),
    ("map", lambda kind: MapType(StringType(), kind), lambda values: [*({"k": x} for x in values)]),
]
Way = Callable[["SparkSession", StructType, list[Any], Path], list[Any]]
"""Writes rows, and returns those that Spark has then."""


def _to_dataframe(spark: "SparkSession", schema: StructType, rows: list[Any], _: Path) -> list[Any]:
    return asyncio.run(to_dataframe(rx.from_iterable(rows), spark, schema)).collect()


def _parquet(spark: "SparkSession", schema: StructType, rows: list[Any], path: Path) -> list[Any]:
    folder = str(path / uuid4().hex)
    asyncio.run(write_parquet(rx.from_iterable(rows), spark, folder, schema))
    return spark.read.schema(schema).parquet(folder).collect()


def _table(spark: "SparkSession", schema: StructType, rows: list[Any], _: Path) -> list[Any]:
    name = f"values_{uuid4().hex}"
    try:
        asyncio.run(append_table(rx.from_iterable(rows[:2]), spark, name, schema))
        asyncio.run(append_table(rx.from_iterable(rows[2:]), spark, name, schema))
        return spark.table(name).collect()
    finally:
        spark.sql(f"drop table if exists {name}")


def _map_flow(spark: "SparkSession", schema: StructType, rows: list[Any], _: Path) -> list[Any]:
    one = spark.range(0, 1, 1, 1)
    return map_flow(one, lambda flow: flow.flat_map(lambda _: rows), schema).collect()


def _serve_flow(spark: "SparkSession", schema: StructType, rows: list[Any], _: Path) -> list[Any]:
    register(spark)

    async def main() -> list[Any]:
        async with serve_flow(rx.from_iterable(rows), schema) as served:
            return await asyncio.to_thread(_loaded, spark, served.options)

    return asyncio.run(main())


def _loaded(spark: "SparkSession", options: dict[str, str]) -> list[Any]:
    activate(spark)
    return spark.read.format("reactive").options(**options).load().collect()


WAYS: Final[dict[str, Way]] = {
    "to_dataframe": _to_dataframe, "write_parquet": _parquet, "append_table": _table,
    "map_flow": _map_flow, "serve_flow": _serve_flow,
}  # fmt: skip
_IN_NO_FILE: Final[tuple[str, ...]] = ("void", "nothing", "null", "geo", "without fields")
"""Parts of the names of columns that Parquet cannot hold."""
_IN_NO_WORKER: Final[tuple[str, ...]] = ("nothing",)
"""The same of PySpark's workers."""
_NOT_OVER_CONNECT: Final = ("interval day", "nothing")
"""The same of what Spark Connect's ``createDataFrame`` refuses."""


def columns(spark: "SparkSession", *, all: bool) -> Iterator[tuple[StructField, Values, Values]]:
    """Yield columns, the values that are written, and those that ``createDataFrame`` gets."""
    parse: Any = StructType.fromDDL
    for text, (taken, _) in TAKEN.items():
        (kind,) = (field.dataType for field in parse(f"v {text}"))
        values, same = [*taken], [*map(_unambiguous, taken)]
        yield StructField(text, kind), values, same
        if all or text in SAMPLE:
            for name, nested, nest in NESTED:
                yield StructField(f"{name} of {text}", nested(kind)), nest(values), nest(same)
    if all:
        df = table(spark).drop("struct with a name twice")
        rows = df.collect()
        for field in df.schema.fields:
            values = [row[field.name] for row in rows]
            yield StructField(f"read {field.name}", field.dataType), values, values


def _unambiguous(value: Any) -> Any:
    """``createDataFrame`` ignores ``fold``, by which ``collect()`` tells the second hour."""
    return value.astimezone() if isinstance(value, datetime) and value.fold else value


def differences(
    spark: "SparkSession", session: "SparkSession", folder: Path, *, all: bool = False
) -> list[str]:
    """Return what differs between ``spark.createDataFrame`` and any way of *session*."""
    found = [*columns(spark, all=all)]
    longest = max(len(values) for _, values, _ in found)
    fields = [StructField("n", LongType()), *(field for field, _, _ in found)]
    written = [range(longest), *(_filled(values, longest) for _, values, _ in found)]
    same = [range(longest), *(_filled(values, longest) for _, _, values in found)]
    untyped: Any = spark
    expected = _sorted(
        untyped.createDataFrame([*zip(*same, strict=True)], StructType(fields)).collect()
    )
    made = list[str]()
    for way, write in WAYS.items():
        if is_connect(session) and way == "serve_flow":
            continue
        unfit = _IN_NO_FILE if way in ("write_parquet", "append_table") else _IN_NO_WORKER
        if is_connect(session):
            unfit += _NOT_OVER_CONNECT
        chosen = [at for at, field in enumerate(fields) if not any(x in field.name for x in unfit)]
        schema = StructType([fields[at] for at in chosen])
        rows = [*zip(*(written[at] for at in chosen), strict=True)]
        result = _sorted(write(session, schema, rows, folder))
        for field in schema.fields:
            for wanted, got in zip(expected, result, strict=True):
                if plain(wanted[field.name]) != plain(got[field.name]):
                    made.append(f"{way}, {field.name}: {got[field.name]} not {wanted[field.name]}")
    return made


def _filled(values: Values, length: int) -> list[Any]:
    return [*values, *[None] * (length - len(values))]


def _sorted(rows: Iterable[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: cast("int", row.n))


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        session = local_session(
            cores=2, quick=True, config={"spark.sql.warehouse.dir": f"{folder}/warehouse"}
        )
        print(*differences(session, session, Path(folder), all=True), sep="\n")  # noqa: T201
        session.stop()
