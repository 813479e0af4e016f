"""The data source "reactive": Spark's tasks read from a flow, and write into one, over a socket.

`_plugin` runs in Spark's Python workers and talks `wire_protocol` with `listener` on the loop.
`flow_server` serves a flow to read; `write_server` makes a flow of what is written.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import require_session
from ..read_mode import ModeUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ("register",)


def register(spark: "SparkSession") -> None:
    """Make ``format("reactive")`` known to *spark*, for `serve_flow` and `serve_writes`.

    Spark's Python workers import this package; on a cluster it must be installed on the executors.
    """
    require_session("register", spark)
    try:
        plugin: Any = import_module(f"{__package__}._plugin")
    except ImportError as error:
        raise ModeUnavailable(
            "register(): the data source 'reactive' needs PySpark 4.2 or newer, where a query "
            "requests a number of rows from its source: pip install 'pyspark>=4.2'"
        ) from error
    spark.dataSource.register(plugin.Reactive)
