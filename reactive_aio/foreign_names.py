"""What other libraries call the operators of a flow, for the error about an unknown attribute."""

from typing import Final

__all__ = ("FOREIGN_NAMES", "NO_EQUIVALENT", "name_here", "why_not")

_ELSEWHERE: Final = {
    # transform
    "map": "select",
    "filter": "where",
    "filter_map": "map_not_null map_optional",
    "of_type": "cast of_class of_subclass",
    "scan": "accumulate running_fold running_reduce scan_async",
    "enumerate": "index indexed with_index zip_with_index",
    "start_with": "prepend start_with_item",
    "transform": "apply compose pipe through",
    # async_map
    "map_async": "amap async_map",
    "filter_async": "filter_when",
    # executors
    "map_in_thread": "map_blocking parallel",
    # framing
    "lines": "decode_lines split_lines",
    "delimited": "split_by",
    # select
    "take": "islice limit",
    "take_while": "takewhile",
    "take_last": "tail",
    "skip": "drop",
    "skip_while": "drop_while dropwhile",
    "skip_last": "drop_last",
    "distinct": "distinct_by unique",
    "distinct_until_changed": "distinct_until_changed_by",
    # flat_map
    "flat_map": "flat_map_iterable flat_map_merge flatmap merge_map select_many",
    "concat_map": "concat_map_iterable flat_map_concat",
    # switch
    "switch_map": "flat_map_latest map_latest transform_latest",
    # choose
    "switch_if_empty": "if_empty or_else",
    "take_until": "take_until_other",
    # combine
    "concat_with": "append",
    "then": "then_many",
    # clock
    "timestamp": "timestamped with_timestamp",
    "elapsed": "time_interval",
    # delay
    "delay": "delay_elements delay_each",
    "rate_limit": "spaceout",
    # throttle
    "debounce": "debounce_time throttle_with_timeout",
    "throttle_first": "throttle_time",
    "throttle_latest": "audit_time",
    "sample": "sample_time throttle_last",
    # time
    "buffer_timeout": "buffer_time buffer_with_time_or_count grouped_within",
    # chunk
    "buffer": "batch batched buffer_count buffer_with_count chunk chunked chunks grouped",
    "buffer_until": "chunk_by split_after",
    "sliding_window": "sliding windowed",
    # window
    "window": "split_every window_count",
    "window_timeout": "window_time window_with_time_or_count",
    # group
    "group_by": "group_adjacent grouped_by groupby key_by partition_by",
    # errors
    "on_error_resume": "catch catch_error catch_exception on_error_resume_next recover_with",
    "on_error_return": "on_error_return_item recover",
    "on_error_map": "map_error",
    "retry": "retry_when",
    # repeat
    "repeat": "cycle repeat_when",
    # backpressure
    "boundary": "buffered",
    "on_backpressure_latest": "conflate",
    "limit_rate": "rebatch_requests",
    # share
    "share": "broadcast publish ref_count share_in",
    "replay": "share_replay state_in",
    # side_effects
    "do_on_next": "do do_action inspect on_each peek spy tap wire_tap",
    "do_finally": "do_after_terminate finalize finally_action on_completion",
    # terminal
    "first": "first_or_default first_or_null head",
    "last": "last_or_default last_or_null",
    "single": "single_or_default single_or_null",
    "element_at": "nth",
    "reduce": "aggregate fold",
    "to_list": "collect collect_list list to_iterable",
    "to_dict": "collect_map to_map",
    "any": "some",
    "all": "every",
    "for_each": "foreach run_foreach",
}

FOREIGN_NAMES: Final = {name: ours for ours, names in _ELSEWHERE.items() for name in names.split()}
"""The operator that does the same, or nearly so, by its name elsewhere in snake case."""


_NO_SCHEDULERS: Final = (
    "there are no schedulers; from_thread reads a source that blocks, map_async can await a thread "
    "for each element, and boundary() lets both sides run at the same time"
)
NO_EQUIVALENT: Final[dict[str, str]] = dict.fromkeys(
    ("observe_on", "publish_on", "run_on", "subscribe_on"), _NO_SCHEDULERS
)
"""What to say of an operator that is left out on purpose."""


def name_here(name: str, vocabulary: type) -> str | None:
    """What *vocabulary* calls the operator *name* of another library; None if unknown."""
    snake = _in_snake_case(name)
    if snake != name and hasattr(vocabulary, snake):
        return snake
    return FOREIGN_NAMES.get(snake)


def why_not(name: str) -> str:
    """Why the operator *name* of another library is left out; empty if it is unknown."""
    reason = NO_EQUIVALENT.get(_in_snake_case(name))
    return f": {reason}" if reason else ""


def _in_snake_case(name: str) -> str:
    return "".join("_" + each.lower() if each.isupper() else each for each in name)
