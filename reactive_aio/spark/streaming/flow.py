"""StreamFlow: a flow of a streaming query, which knows the columns of its rows."""

from typing import TYPE_CHECKING, TypeVar

from ..._core.compiler.chain import Chain
from ...flow import Flow

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ("StreamFlow",)

T_co = TypeVar("T_co", covariant=True)


class StreamFlow(Flow[T_co]):
    """What `from_stream` and `from_micro_batches` return: a `Flow` with a `schema`."""

    __slots__ = ("_schema",)

    def __init__(self, chain: Chain, schema: "StructType") -> None:
        super().__init__(chain)
        self._schema = schema

    @property
    def schema(self) -> "StructType":
        """The columns, as ``df.schema`` has them."""
        return self._schema
