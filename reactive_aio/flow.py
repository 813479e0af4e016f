"""Flow: the vocabulary of the package on one page.

Each line binds a function of its family's module; its docstring is the method's. A flow is cold
and immutable: an operator returns a new one, and every subscription starts anew.
"""

from typing import TypeVar

from ._operators import (
    chunk as _chunk,
    concurrent as _concurrent,
    demand as _demand,
    fill as _fill,
    look as _look,
    meta as _meta,
    select as _select,
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
    filter_map = _transform.filter_map
    of_type = _transform.of_type
    scan = _transform.scan
    enumerate = _transform.enumerate
    pairwise = _transform.pairwise
    transform = _transform.transform

    # select
    take = _select.take
    take_while = _select.take_while
    take_last = _select.take_last
    skip = _select.skip
    skip_while = _select.skip_while
    skip_last = _select.skip_last
    distinct = _select.distinct
    distinct_until_changed = _select.distinct_until_changed

    # combine
    start_with = _fill.start_with
    default_if_empty = _fill.default_if_empty

    # time

    # chunk
    buffer = _chunk.buffer
    sliding_window = _chunk.sliding_window

    # errors

    # demand
    boundary = _demand.boundary

    # look
    do_on_next = _look.do_on_next
    do_on_error = _look.do_on_error
    do_on_complete = _look.do_on_complete
    do_on_cancel = _look.do_on_cancel
    do_on_request = _look.do_on_request
    do_finally = _look.do_finally
    log = _look.log

    # meta
    bound = _meta.bound
    explain = _meta.explain

    # end
    __aiter__ = _iterate.iterate
    stream = _iterate.stream


Fluent.made_of = Flow
