"""Flow: the vocabulary of the package on one page.

Each line binds a function of its family's module; its docstring is the method's. A flow is cold
and immutable: an operator returns a new one, and every subscription starts anew.
"""

from typing import TypeVar

from ._operators import (
    concurrent as _concurrent,
    demand as _demand,
    meta as _meta,
    transform as _transform,
)
from ._sinks import iterate as _iterate
from .stage import Fluent

__all__ = ("Flow",)

T_co = TypeVar("T_co", covariant=True)


class Flow(Fluent[T_co]):
    """A publisher with operators: ``just(1, 2).map(str)`` is a ``Flow[str]``."""

    __slots__ = ()

    # transform
    map = _transform.map
    map_async = _concurrent.map_async
    filter = _transform.filter

    # select

    # combine

    # time

    # chunk

    # errors

    # demand
    boundary = _demand.boundary

    # look

    # meta
    bound = _meta.bound
    explain = _meta.explain

    # end
    __aiter__ = _iterate.iterate
    stream = _iterate.stream


Fluent.made_of = Flow
