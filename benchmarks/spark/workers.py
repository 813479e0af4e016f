"""The peak memory of a Python worker that runs a flow: it does not grow with the partition.

    python -m benchmarks.spark.workers [ROWS …]

Each size is one partition, in a session of its own.
"""

import json
import subprocess
import sys
from typing import Any

SIZES = (100_000, 1_000_000, 10_000_000)


def peak(rows: int) -> int:
    """Return the MB of the worker's peak, after *rows* rows."""
    from reactive_aio import Flow
    from reactive_aio.spark import local_session, map_flow

    spark = local_session("memory", cores=1)
    df = spark.range(0, rows, 1, 1).selectExpr("id", "cast(id as string) as text")

    def pipeline(batches: Flow[Any]) -> Flow[Any]:
        def memory(_: Any) -> Any:
            import resource

            return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,)

        return batches.boundary(256).map(memory)

    untyped: Any = map_flow(df, pipeline, "megabytes long", rows="tuple")
    found = int(untyped.selectExpr("max(megabytes)").first()[0])
    spark.stop()
    return found


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["--one"]:
        print(json.dumps(peak(int(arguments[1]))))
        return
    for rows in map(int, arguments) if arguments else SIZES:
        command = [sys.executable, "-W", "ignore", "-m", __spec__.name, "--one", str(rows)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        print(f"{rows:12,} rows: {json.loads(ran.stdout.splitlines()[-1])} MB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
