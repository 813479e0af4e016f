"""Flow: the vocabulary of the package on one page.

Each line binds a function of the module named by the heading; its docstring is that of the method.
(``Final``: type checkers then use the type of the function.) A flow is cold and immutable: an
operator returns a new one, and each subscription starts the source again.
"""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final, Generic, TypeVar

from ._core.compiler.chain import Chain
from ._operators import (
    async_map as _async_map,
    backpressure as _backpressure,
    choose as _choose,
    chunk as _chunk,
    clock as _clock,
    combine as _combine,
    delay as _delay,
    errors as _errors,
    executors as _executors,
    flat_map as _flat_map,
    framing as _framing,
    group as _group,
    introspection as _introspection,
    latest as _latest,
    progress as _progress,
    repeat as _repeat,
    select as _select,
    share as _share,
    side_effects as _side_effects,
    switch as _switch,
    throttle as _throttle,
    time as _time,
    transform as _transform,
    window as _window,
)
from ._shared import foreign_names as _foreign_names, foreign_options as _foreign_options
from ._sinks import (
    async_iteration as _async_iteration,
    collect as _collect,
    for_each as _for_each,
    hand_over as _hand_over,
    running as _running,
    terminal as _terminal,
)
from .stage import Fluent

__all__ = ("Flow", "GroupedFlow", "WindowFlow")

T_co = TypeVar("T_co", covariant=True)
K_co = TypeVar("K_co", covariant=True)


class Flow(Fluent[T_co], _foreign_names.ForeignNames, is_vocabulary=True):
    """A publisher with operators: ``just(1, 2).map(str)`` is a ``Flow[str]``."""

    __slots__ = ()

    # transform
    map: Final = _transform.map
    filter: Final = _transform.filter
    filter_map: Final = _transform.filter_map
    of_type: Final = _transform.of_type
    scan: Final = _transform.scan
    enumerate: Final = _transform.enumerate
    pairwise: Final = _transform.pairwise
    start_with: Final = _transform.start_with
    default_if_empty: Final = _transform.default_if_empty
    transform: Final = _transform.transform

    # async_map
    map_async: Final = _async_map.map_async
    filter_async: Final = _async_map.filter_async

    # executors
    map_in_thread: Final = _executors.map_in_thread
    map_in_process: Final = _executors.map_in_process

    # select
    take: Final = _select.take
    take_while: Final = _select.take_while
    take_last: Final = _select.take_last
    skip: Final = _select.skip
    skip_while: Final = _select.skip_while
    skip_last: Final = _select.skip_last
    distinct: Final = _select.distinct
    distinct_until_changed: Final = _select.distinct_until_changed

    # flat_map
    flat_map: Final = _flat_map.flat_map
    concat_map: Final = _flat_map.concat_map

    # switch
    switch_map: Final = _switch.switch_map
    expand: Final = _switch.expand

    # choose
    switch_if_empty: Final = _choose.switch_if_empty
    take_until: Final = _choose.take_until

    # latest
    with_latest_from: Final = _latest.with_latest_from

    # combine
    concat_with: Final = _combine.concat_with
    merge_with: Final = _combine.merge_with
    zip_with: Final = _combine.zip_with
    then: Final = _combine.then

    # clock
    timestamp: Final = _clock.timestamp
    elapsed: Final = _clock.elapsed

    # delay
    delay: Final = _delay.delay
    delay_subscription: Final = _delay.delay_subscription
    rate_limit: Final = _delay.rate_limit

    # throttle
    debounce: Final = _throttle.debounce
    throttle_first: Final = _throttle.throttle_first
    throttle_latest: Final = _throttle.throttle_latest
    sample: Final = _throttle.sample

    # time
    timeout: Final = _time.timeout
    buffer_timeout: Final = _time.buffer_timeout

    # chunk
    buffer: Final = _chunk.buffer
    buffer_until: Final = _chunk.buffer_until
    sliding_window: Final = _chunk.sliding_window

    # window
    window: Final = _window.window
    window_timeout: Final = _window.window_timeout
    window_reduce: Final = _window.window_reduce

    # group
    group_by: Final = _group.group_by

    # framing
    lines: Final = _framing.lines
    json_lines: Final = _framing.json_lines
    delimited: Final = _framing.delimited

    # errors
    on_error_resume: Final = _errors.on_error_resume
    on_error_return: Final = _errors.on_error_return
    on_error_map: Final = _errors.on_error_map
    on_error_complete: Final = _errors.on_error_complete
    retry: Final = _errors.retry

    # repeat
    repeat: Final = _repeat.repeat
    restart: Final = _repeat.restart

    # backpressure
    boundary: Final = _backpressure.boundary
    on_backpressure_buffer: Final = _backpressure.on_backpressure_buffer
    on_backpressure_drop: Final = _backpressure.on_backpressure_drop
    on_backpressure_latest: Final = _backpressure.on_backpressure_latest
    on_backpressure_error: Final = _backpressure.on_backpressure_error
    limit_rate: Final = _backpressure.limit_rate

    # share
    share: Final = _share.share
    replay: Final = _share.replay
    cache: Final = _share.cache

    # side_effects
    do_on_next: Final = _side_effects.do_on_next
    do_on_error: Final = _side_effects.do_on_error
    do_on_complete: Final = _side_effects.do_on_complete
    do_on_cancel: Final = _side_effects.do_on_cancel
    do_on_request: Final = _side_effects.do_on_request
    do_on_discard: Final = _side_effects.do_on_discard
    do_finally: Final = _side_effects.do_finally
    log: Final = _side_effects.log
    name: Final = _side_effects.name

    # progress
    progress: Final = _progress.progress

    # introspection
    bound: Final = _introspection.bound
    explain: Final = _introspection.explain
    graph: Final = _introspection.graph
    stats: Final = _introspection.stats

    # async_iteration
    stream: Final = _async_iteration.stream

    # terminal
    first: Final = _terminal.first
    last: Final = _terminal.last
    single: Final = _terminal.single
    element_at: Final = _terminal.element_at
    min: Final = _terminal.min
    max: Final = _terminal.max
    reduce: Final = _terminal.reduce
    count: Final = _terminal.count
    any: Final = _terminal.any
    all: Final = _terminal.all
    sum: Final = _terminal.sum
    run: Final = _terminal.run

    # collect
    to_list: Final = _collect.to_list
    to_dict: Final = _collect.to_dict

    # for_each
    for_each: Final = _for_each.for_each

    # running
    running: Final = _running.running

    # hand_over
    to_queue: Final = _hand_over.to_queue
    to_anyio: Final = _hand_over.to_anyio
    into: Final = _hand_over.into

    # Defined here, as type checkers require of an AsyncIterable.
    def __aiter__(self) -> AsyncIterator[T_co]:
        return _async_iteration.iterate(self)


_foreign_options.explain_foreign_options(Flow, [name for name in vars(Flow) if name[0] != "_"])
_foreign_names.explain_foreign_names(Flow)


class GroupedFlow(Flow[T_co], Generic[K_co, T_co], is_grouped=True):
    """One of the flows of ``group_by``: the elements with one key."""

    __slots__ = ("_key",)

    def __init__(self, chain: Chain, key: K_co) -> None:
        super().__init__(chain)
        self._key = key

    @property
    def key(self) -> K_co:
        """The key of its elements."""
        return self._key


class WindowFlow(Flow[T_co], is_timed=True):
    """One of the flows of ``window_timeout``: the elements of a time."""

    __slots__ = ("_end", "_start")

    def __init__(self, chain: Chain, start: datetime, end: datetime) -> None:
        super().__init__(chain)
        self._start = start
        self._end = end

    @property
    def start(self) -> datetime:
        """When it begins."""
        return self._start

    @property
    def end(self) -> datetime:
        """When it ends, unless it is full before, or the source ends."""
        return self._end
