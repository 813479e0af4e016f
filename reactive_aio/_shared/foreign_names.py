"""What other libraries call the operators of a flow, for the error about an unknown attribute."""

from abc import ABCMeta
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from .._core.option_names import in_snake_case

__all__ = (
    "FOREIGN_NAMES",
    "FOREIGN_SOURCES",
    "NO_EQUIVALENT",
    "ForeignNames",
    "explain_foreign_names",
    "hint_for_package",
    "in_camel_case",
    "in_snake_case",
    "name_here",
)

_ELSEWHERE: Final = {
    # transform
    "map": "pluck select smap starmap",
    "filter": "filterfalse where",
    "filter_map": "handle map_not_null map_optional",
    "of_type": "cast collect_type filter_is_instance of_class of_subclass",
    "scan": "accumulate running_fold running_reduce scan_async scan_with stateful_map",
    "enumerate": "collect_indexed index indexed with_index zip_with_index",
    "start_with": "on_start prepend start_with_array start_with_item start_with_iterable",
    "transform": "apply compose pipe through",
    # async_map
    "map_async": "amap async_map flat_map_sequential map_async_partitioned map_async_unordered",
    "filter_async": "filter_when",
    # executors
    "map_in_thread": "map_blocking parallel",
    # select
    "take": "islice limit limit_request",
    "take_while": "takewhile until",
    "take_last": "tail takelast",
    "skip": "drop",
    "skip_while": "drop_while dropwhile",
    "skip_last": "drop_last skiplast",
    "distinct": "distinct_by unique",
    "distinct_until_changed": "distinct_until_changed_by drop_repeated",
    # flat_map
    "flat_map": (
        "flat_map_iterable flat_map_merge flatmap flatten map_concat merge_all merge_map "
        "select_many"
    ),
    "concat_map": "concat_all concat_map_iterable concatmap flat_map_concat",
    # switch
    "switch_map": (
        "collect_latest flat_map_latest map_latest switch switch_all switch_latest "
        "switch_on_next switchmap transform_latest"
    ),
    # choose
    "switch_if_empty": "if_empty on_empty or_else",
    "take_until": "take_until_other take_until_with_time take_with_time take_within",
    # combine
    "concat_with": "append concat end_with",
    "merge_with": "merge merge_all_with",
    "zip_with": "zip zip_all zip_with_iterable",
    "then": "and_then then_empty then_many",
    # clock
    "timestamp": "timestamped with_timestamp",
    "elapsed": "time_interval timed",
    # delay
    "delay": "delay_each delay_elements delay_sequence",
    "delay_subscription": "initial_delay",
    "rate_limit": "spaceout throttle",
    # throttle
    "debounce": "debounce_time sample_timeout throttle_with_timeout",
    "throttle_first": "sample_first throttle_time",
    "throttle_latest": "audit_time",
    "sample": "sample_time throttle_last",
    # time
    "timeout": "completion_timeout idle_timeout initial_timeout",
    "buffer_timeout": (
        "buffer_time buffer_with_time buffer_with_time_or_count grouped_weighted_within "
        "grouped_within"
    ),
    # chunk
    "buffer": "batch batched buffer_count buffer_with_count chunk chunked chunks grouped",
    "buffer_until": "chunk_by split_after",
    "sliding_window": "sliding windowed",
    # window
    "window": "split_every window_count window_with_count",
    "window_timeout": "window_time window_with_time window_with_time_or_count",
    # group
    "group_by": "group_adjacent group_by_until groupby grouped_by key_by partition_by",
    # framing
    "lines": "decode_lines split_lines",
    "delimited": "split_by",
    # errors
    "on_error_resume": (
        "catch catch_error catch_exception on_error_resume_next on_error_resume_with "
        "recover_with recover_with_retries"
    ),
    "on_error_return": "on_error_return_item recover",
    "on_error_map": "map_error",
    "retry": "retry_until retry_when",
    # repeat
    "repeat": "cycle repeat_when",
    # backpressure
    "boundary": "buffered detach",
    "on_backpressure_latest": "conflate",
    "limit_rate": "rebatch_requests",
    # share
    "share": "broadcast publish ref_count share_in tee",
    "replay": "share_replay state_in",
    # side_effects
    "do_on_next": "action do do_action do_on_each inspect on_each peek spy tap wire_tap",
    "do_on_discard": "on_undelivered_element",
    "do_finally": (
        "do_after_terminate do_on_terminate finalize finally_action on_completion watch_termination"
    ),
    "log": "print",
    "name": "checkpoint named",
    # terminal
    "first": (
        "first_element first_or_default first_or_error first_or_null first_value_from head "
        "head_option next to_promise"
    ),
    "last": (
        "last_element last_option last_or_default last_or_error last_or_null last_value_from "
        "to_future"
    ),
    "single": "single_element single_or_default single_or_error single_or_null",
    "element_at": "element_at_or_default element_at_or_error getitem nth",
    "reduce": "aggregate fold reduce_with",
    "any": "contains exists has_element has_elements is_empty some",
    "all": "every forall",
    "max": "max_by",
    "min": "min_by",
    "run": "ignore ignore_elements launch_in",
    # collect
    "to_list": "collect collect_list collection list seq to_array to_collection to_iterable",
    "to_dict": "collect_map to_map",
    # for_each
    "for_each": "foreach foreach_async run_foreach",
    # hand_over
    "to_queue": "produce_in",
}

FOREIGN_NAMES: Final = {name: ours for ours, names in _ELSEWHERE.items() for name in names.split()}
"""The operator that does the same, or nearly so, by its name elsewhere in snake case."""

_SOURCES_ELSEWHERE: Final = {
    "Flow": "flowable flux mono multi observable uni",
    "LatestProcessor": "behavior_processor behavior_subject mutable_state_flow",
    "MulticastProcessor": "mutable_shared_flow publish_processor publish_subject subject",
    "ReplayProcessor": "replay_subject",
    "UnicastProcessor": "unicast_subject",
    "combine_latest": "combine combine_latest_with zip_latest ziplatest",
    "concat": "chain",
    "create": "callback_flow channel_flow from_event from_event_pattern push queue",
    "defer": "defer_contextual lazy_source",
    "empty": "empty_flow",
    "error": "failed throw throw_error",
    "from_aiter": "iterate unfold_async",
    "from_awaitable": (
        "call from_completion_stage from_future from_promise future lazy_future to_async"
    ),
    "from_callable": "from_runnable from_supplier start",
    "from_iterable": "as_flow from from_array from_iterator from_list",
    "from_queue": "consume_as_flow receive_as_flow",
    "from_thread": "from_stream unfold_resource",
    "generate": "unfold",
    "interval": "interval_range tick",
    "just": "flow_of of return_value",
    "merge": "merge_preferred merge_prioritized merge_priority",
    "race": "amb amb_array amb_with first_with_signal first_with_value race_with",
    "using": "map_with_resource using_when",
    "zip": "zip_longest",
}

FOREIGN_SOURCES: Final = {
    name: ours for ours, names in _SOURCES_ELSEWHERE.items() for name in names.split()
}
"""What the package exports instead of a name elsewhere, which is in snake case here."""


_NO_SCHEDULERS: Final = (
    "there are no schedulers; from_thread reads a source that blocks, map_async can await a thread "
    "for each element, and boundary() lets both sides run at the same time"
)
_NO_BLOCKING: Final = "nothing may block the event loop; await first(), last() or to_list()"
_NO_SIGNALS: Final = (
    "signals are not elements; do_on_next, do_on_error and do_finally observe them, and "
    "reactive_aio.testing checks them"
)
_NO_SORT: Final = "only a whole list can be sorted: sorted(await flow.to_list())"
_NO_JOIN: Final = "there are no windows of two sources that overlap in time"
_NO_SKIP_UNTIL: Final = (
    "with_latest_from() of another flow skips until that one emits, and skip_while() of the "
    "opposite condition until an element meets it"
)
_NO_DISPOSE: Final = (
    "a flow is not a subscription; leaving `async for` cancels it, and so does cancel() of what "
    "on_subscribe() receives"
)
NO_EQUIVALENT: Final[dict[str, str]] = {
    **dict.fromkeys(
        ("flow_on", "observe_on", "publish_on", "run_on", "subscribe_on"), _NO_SCHEDULERS
    ),
    **dict.fromkeys(("block", "block_first", "block_last", "blocking_first"), _NO_BLOCKING),
    **dict.fromkeys(("dematerialize", "materialize"), _NO_SIGNALS),
    **dict.fromkeys(("sort", "sorted"), _NO_SORT),
    **dict.fromkeys(("group_join", "join"), _NO_JOIN),
    **dict.fromkeys(("skip_until", "skip_until_other"), _NO_SKIP_UNTIL),
    **dict.fromkeys(("dispose", "unsubscribe"), _NO_DISPOSE),
    "average": "statistics.fmean(await flow.to_list()) is the mean",
    "partition": "two filter() of one share() are the two parts",
    "to_set": "set(await flow.to_list()) is the set",
    "exhaust_map": (
        "on_backpressure_drop().concat_map() drops what arrives while an inner flow is running"
    ),
    **dict.fromkeys(
        ("sink", "to_sink"),
        "a flow is consumed by `async for`, for_each(), run(), subscribe() or into()",
    ),
    "context_write": "the context variables of the subscriber are active in every callback",
    "on_error_continue": (
        "an error ends a flow; map_async and for_each leave out an element whose work fails, with "
        'on_error="skip"'
    ),
    "serialize": "every flow sends one signal at a time",
}
"""What to say of an operator that is left out on purpose."""


def name_here(name: str, vocabulary: type) -> str | None:
    """What *vocabulary* calls the operator *name* of another library; None if unknown."""
    snake = in_snake_case(name)
    if snake != name and hasattr(vocabulary, snake):
        return snake
    return FOREIGN_NAMES.get(snake)


def hint_for_package(name: str, exported: Iterable[str], vocabulary: type) -> str:
    """How the error about the attribute *name* of the package continues; empty if unknown."""
    if name.startswith("_"):
        return ""
    snake = in_snake_case(name).strip("_")  # `Observable` and `from_`
    if ours := FOREIGN_SOURCES.get(snake):
        return f"; here it is called {ours}"
    if snake in exported:
        return f"; here it is called {snake}"
    if method := snake if hasattr(vocabulary, snake) else FOREIGN_NAMES.get(snake):
        return f"; it is a method of a flow here: flow.{method}()"
    return ""


def in_camel_case(name: str) -> str:
    """*name*, which is in snake case, as other languages write it."""
    first, *others = name.split("_")
    return first + "".join(each.title() for each in others)


class _ForeignName:
    """An attribute that raises the AttributeError which says what it is called here."""

    __slots__ = ("_message", "_name")

    def __init__(self, name: str, hint: str) -> None:
        self._name = name
        self._message = f"a Flow has no attribute {name!r}{hint}"

    def __get__(self, flow: object, owner: object) -> NoReturn:
        raise AttributeError(self._message, name=self._name, obj=owner if flow is None else flow)


if TYPE_CHECKING:  # which reports unknown attributes, and any metaclass that it cannot resolve

    class ForeignNames:
        """See below."""

        __slots__ = ()

else:

    class _Unlisted(type(Protocol)):  # for a class that implements a protocol and is a flow
        """The type of classes that do not list their foreign names: see ``help(Flow)``."""

        def __new__(mcs, *args: Any, **options: Any) -> type:
            return ABCMeta.__new__(mcs, *args, **options)

        # Those of protocols look at each attribute.
        __instancecheck__ = type.__instancecheck__
        __subclasscheck__ = type.__subclasscheck__

        def __dir__(cls) -> Iterable[str]:
            return _without_foreign_names(super().__dir__())

    class ForeignNames(metaclass=_Unlisted):
        """Has an attribute for each foreign name, once `explain_foreign_names` was called.

        With a ``__getattr__`` instead, each access to any attribute takes several times as long.
        """

        __slots__ = ()

        def __dir__(self) -> Iterable[str]:
            return _without_foreign_names(super().__dir__())


def _without_foreign_names(names: Iterable[str]) -> list[str]:
    own = vars(ForeignNames)
    return [name for name in names if not isinstance(own.get(name), _ForeignName)]


def explain_foreign_names(vocabulary: type[ForeignNames]) -> None:
    """Give *vocabulary* the names that its operators have elsewhere, in snake and camel case."""
    hints = {name: f"; here it is called {ours}()" for name, ours in FOREIGN_NAMES.items()}
    hints |= {name: f": {reason}" for name, reason in NO_EQUIVALENT.items()}
    hints |= {in_camel_case(name): hint for name, hint in hints.items()}
    ours = [name for name in dir(vocabulary) if "_" in name and not name.startswith("_")]
    hints |= {in_camel_case(name): f"; here it is called {name}()" for name in ours}
    for name, hint in hints.items():
        setattr(ForeignNames, name, _ForeignName(name, hint))
