"""How much memory does reading a Spark job take, in a new process for each case (Linux)?

The figure is the increase of the peak memory, in Python's process and in the JVM, whose heap is
limited to 512 MB. The JVM fills its heap before it collects garbage.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..runner.question import Question
from . import tables

ROWS = 5_000_000
python = Question(
    "Memory to read a Spark job: Python",
    ROWS,
    unit="MB",
    is_goal_a_figure=True,
    rounds=1,
    is_warmed_up=False,
)
jvm = Question("Memory to read a Spark job: the JVM", ROWS, unit="MB", rounds=1, is_warmed_up=False)

WARM_UP = 50_000
CASES = {
    "`df.toLocalIterator()`": 1.0,
    "`df.toArrow()`": 1.0,
    "`df.toPandas()`": 1.0,
    "tuples": 1.0,
    "batches": 1.0,
    "rows": 1.0,
    "tuples, of a quarter of the rows": 0.25,
}
found: dict[str, float] = {}


async def in_python(name: str, count: int) -> float:
    arguments = [sys.executable, "-W", "ignore", "-m", __name__, name, str(int(count))]
    ran = await asyncio.to_thread(subprocess.run, arguments, capture_output=True, check=True)
    python, jvm = json.loads(ran.stdout)
    found[name] = jvm
    return float(python)


def add(name: str, share: float) -> None:
    async def measure(count: int) -> float:
        return await in_python(name, int(count * share))

    async def found_before(_: int) -> float:
        return found[name]

    if name.startswith("`df"):
        python.peer(name)(measure)
        jvm.peer(name)(found_before)
    else:
        python.ours(f"memory to read Spark: {name}", goal=60)(measure)
        jvm.ours(f"memory of Spark's JVM: {name}")(found_before)


for each in CASES.items():
    add(*each)


# -- in the new process ---------------------------------------------------------------------------
async def read(name: str, table: Any) -> int:
    match name.partition(",")[0]:
        case "tuples":
            return await tables.flow(table, "tuple").count()
        case "rows":
            return await tables.flow(table, "row").count()
        case "batches":
            return int(await tables.flow(table, "batch").map(tables.size).sum())
        case _ if "Iterator" in name:
            return sum(1 for _ in table.toLocalIterator())
        case _ if "Pandas" in name:
            return len(table.toPandas())
        case _:
            return int(table.toArrow().num_rows)


def memory(process: int | str, field: str) -> float:
    """Return the memory in MB."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1000
    raise LookupError(field)


def main(name: str, count: int) -> None:
    tables.OPTIONS["spark.driver.memory"] = "512m"
    spark = tables.session()
    asyncio.run(read(name, tables.numbers(WARM_UP)))
    processes = ("self", spark.sparkContext._gateway.proc.pid)
    before = list[float]()
    for process in processes:
        Path(f"/proc/{process}/clear_refs").write_text("5")  # resets the peak
        before.append(memory(process, "VmRSS"))
    assert asyncio.run(read(name, tables.numbers(count))) == count
    peaks = [memory(process, "VmHWM") for process in processes]
    json.dump([peak - start for peak, start in zip(peaks, before, strict=True)], sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
