from typing import TypeVar

from ._operators import transform as _transform
from .stage import Fluent

__all__ = ("Flow",)

T_co = TypeVar("T_co", covariant=True)


class Flow(Fluent[T_co]):
    __slots__ = ()
    map = _transform.map
    filter = _transform.filter


Fluent.made_of = Flow
