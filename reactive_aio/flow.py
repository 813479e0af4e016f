"""Flow: the vocabulary of the package on one page.

Each line binds a function of its family's module; its docstring is the method's. (``Final``: a type
checker then takes the function's type as it is.) A flow is cold and immutable: an operator returns
a new one, and every subscription starts anew.
"""

from collections.abc import AsyncIterator
from typing import Final, TypeVar

from ._operators import (
    chunk as _chunk,
    combine as _combine,
    concurrent as _concurrent,
    demand as _demand,
    errors as _errors,
    fill as _fill,
    flatten as _flatten,
    look as _look,
    meta as _meta,
    overflow as _overflow,
    select as _select,
    sequel as _sequel,
    time as _time,
    transform as _transform,
    zipped as _zipped,
)
from ._sinks import iterate as _iterate, pick as _pick, spark as _spark, terminal as _terminal
from .stage import Fluent

__all__ = ("Flow",)

T_co = TypeVar("T_co", covariant=True)


class Flow(Fluent[T_co]):
    """A publisher with operators: ``just(1, 2).map(str)`` is a ``Flow[str]``."""

    __slots__ = ()

    # transform
    map: Final = _transform.map
    map_async: Final = _concurrent.map_async
    filter: Final = _transform.filter
    filter_async: Final = _concurrent.filter_async
    filter_map: Final = _transform.filter_map
    of_type: Final = _transform.of_type
    scan: Final = _transform.scan
    enumerate: Final = _transform.enumerate
    flat_map: Final = _flatten.flat_map
    pairwise: Final = _transform.pairwise
    transform: Final = _transform.transform

    # select
    take: Final = _select.take
    take_while: Final = _select.take_while
    take_last: Final = _select.take_last
    skip: Final = _select.skip
    skip_while: Final = _select.skip_while
    skip_last: Final = _select.skip_last
    distinct: Final = _select.distinct
    distinct_until_changed: Final = _select.distinct_until_changed

    # combine
    concat_with: Final = _combine.concat_with
    merge_with: Final = _combine.merge_with
    zip_with: Final = _zipped.zip_with
    then: Final = _sequel.then
    start_with: Final = _fill.start_with
    default_if_empty: Final = _fill.default_if_empty

    # time
    timeout: Final = _time.timeout

    # chunk
    buffer: Final = _chunk.buffer
    buffer_timeout: Final = _time.buffer_timeout
    sliding_window: Final = _chunk.sliding_window

    # errors
    on_error_resume: Final = _errors.on_error_resume
    on_error_return: Final = _errors.on_error_return
    retry: Final = _errors.retry

    # demand
    boundary: Final = _demand.boundary
    on_backpressure_buffer: Final = _overflow.on_backpressure_buffer
    on_backpressure_drop: Final = _overflow.on_backpressure_drop
    on_backpressure_latest: Final = _overflow.on_backpressure_latest

    # look
    do_on_next: Final = _look.do_on_next
    do_on_error: Final = _look.do_on_error
    do_on_complete: Final = _look.do_on_complete
    do_on_cancel: Final = _look.do_on_cancel
    do_on_request: Final = _look.do_on_request
    do_finally: Final = _look.do_finally
    log: Final = _look.log

    # meta
    bound: Final = _meta.bound
    explain: Final = _meta.explain

    # end
    stream: Final = _iterate.stream
    first: Final = _pick.first
    last: Final = _pick.last
    single: Final = _pick.single
    element_at: Final = _pick.element_at
    reduce: Final = _terminal.reduce
    to_list: Final = _terminal.to_list
    to_dict: Final = _terminal.to_dict
    count: Final = _terminal.count
    any: Final = _terminal.any
    all: Final = _terminal.all
    sum: Final = _pick.sum
    min: Final = _pick.min
    max: Final = _pick.max
    for_each: Final = _terminal.for_each
    run: Final = _terminal.run

    # end in Spark, with the extra "spark"
    to_dataframe: Final = _spark.to_dataframe
    write_parquet: Final = _spark.write_parquet
    append_table: Final = _spark.append_table

    def __aiter__(self) -> AsyncIterator[T_co]:  # a method, or it would not be an AsyncIterable
        return _iterate.iterate(self)


Fluent.made_of = Flow
