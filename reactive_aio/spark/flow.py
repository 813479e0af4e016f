"""SparkFlow: a flow of the rows of a DataFrame, which still knows what Spark knows of them."""

from typing import TYPE_CHECKING, TypeVar

from ..flow import Flow
from .mode import Chosen

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from .._core.chain import Chain

__all__ = ("SparkFlow",)

T_co = TypeVar("T_co", covariant=True)


class SparkFlow(Flow[T_co]):
    """What `from_dataframe` returns: a `Flow` with a `schema` and a `mode`.

    What an operator returns is an ordinary flow: its elements need not be rows any more.
    """

    __slots__ = ("_chosen", "_schema")

    def __init__(self, chain: "Chain", schema: "StructType", chosen: Chosen) -> None:
        super().__init__(chain)
        self._schema = schema
        self._chosen = chosen

    @property
    def schema(self) -> "StructType":
        """The columns, as ``df.schema`` has them."""
        return self._schema

    @property
    def mode(self) -> Chosen:
        """How the rows come out of Spark, and why so: ``mode.mode`` is "arrow" or "rows"."""
        return self._chosen
