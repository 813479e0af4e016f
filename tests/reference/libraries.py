"""What other libraries call the operators, in their own spelling.

Names that differ only in case from the operator that does the same, such as ``flatMap``, are left
out. A flow suggests its own name for one of another library (`reactive_aio.foreign_names`): a test
compares both tables.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from reactive_aio.foreign_names import FOREIGN_NAMES, in_snake_case

__all__ = ("ELSEWHERE", "FUNCTIONS", "ForeignName", "foreign_names")

_RX: Final = {
    "Flow": "Flowable Observable",
    "LatestProcessor": "BehaviorProcessor BehaviorSubject",
    "MulticastProcessor": "PublishProcessor PublishSubject Subject",
    "ReplayProcessor": "ReplaySubject",
    "UnicastProcessor": "UnicastSubject",
    "all": "every",
    "any": "some",
    "buffer": "bufferCount buffer_with_count",
    "buffer_timeout": "bufferTime buffer_with_time_or_count",
    "combine_latest": "combineLatestWith",
    "concat_map": "concatAll",
    "concat_with": "endWith",
    "create": "fromEvent fromEventPattern from_event",
    "debounce": "debounceTime throttleWithTimeout",
    "do_finally": "doAfterTerminate finalize finally_action",
    "do_on_next": "do do_action doOnEach tap",
    "elapsed": "timeInterval",
    "error": "throw throwError",
    "filter": "where",
    "filter_map": "mapOptional",
    "first": "firstElement firstOrError firstValueFrom first_or_default toPromise",
    "flat_map": "flatMapIterable mergeAll mergeMap selectMany",
    "for_each": "subscribe",
    "from_awaitable": "fromFuture fromPromise from_future",
    "from_callable": "fromSupplier start",
    "from_iterable": "from fromArray",
    "interval": "intervalRange",
    "just": "of return_value",
    "last": "lastElement lastOrError lastValueFrom last_or_default",
    "limit_rate": "rebatchRequests",
    "map": "pluck select",
    "merge_with": "mergeAllWith",
    "of_type": "cast",
    "on_error_resume": "catch catchError catch_exception onErrorResumeNext onErrorResumeWith",
    "on_error_return": "onErrorReturnItem",
    "race": "amb ambArray ambWith raceWith",
    "reduce": "aggregate reduceWith",
    "repeat": "repeatWhen",
    "replay": "shareReplay",
    "retry": "retryUntil retryWhen",
    "sample": "sampleTime throttleLast",
    "run": "ignoreElements",
    "scan": "scanWith",
    "share": "publish refCount",
    "single": "singleElement single_or_default",
    "start_with": "startWithArray startWithItem startWithIterable",
    "switch_map": "switchAll switchOnNext switch_latest",
    "take_until": "take_until_with_time take_with_time",
    "then": "andThen",
    "throttle_first": "throttle throttleTime",
    "throttle_latest": "auditTime",
    "to_dict": "toMap",
    "to_list": "collect toArray to_iterable",
    "transform": "compose pipe",
    "window": "windowCount window_with_count",
    "window_timeout": "windowTime window_with_time_or_count",
    "zip_with": "zipAll",
}
_REACTOR: Final = {
    "Flow": "Flux Mono",
    "LatestProcessor": "Sinks.many().replay().latest",
    "MulticastProcessor": "Sinks.many().multicast",
    "ReplayProcessor": "Sinks.many().replay",
    "UnicastProcessor": "Sinks.many().unicast",
    "any": "hasElement hasElements",
    "concat_map": "concatMapIterable",
    "create": "push",
    "defer": "deferContextual",
    "delay": "delayElements delaySequence",
    "do_finally": "doAfterTerminate doOnTerminate",
    "do_on_next": "doOnEach",
    "elapsed": "timed",
    "enumerate": "index",
    "filter_async": "filterWhen",
    "filter_map": "handle mapNotNull",
    "first": "next",
    "flat_map": "flatMapIterable",
    "from_awaitable": "fromCompletionStage fromFuture",
    "from_callable": "fromRunnable fromSupplier",
    "from_iterable": "fromArray",
    "from_publisher": "from",
    "from_thread": "fromStream",
    "map_async": "flatMapSequential",
    "merge": "mergePriority",
    "name": "checkpoint",
    "of_type": "cast",
    "race": "firstWithSignal firstWithValue",
    "reduce": "reduceWith",
    "repeat": "repeatWhen",
    "retry": "retryWhen",
    "share": "publish refCount",
    "switch_map": "switchOnNext",
    "take": "limitRequest",
    "take_until": "takeUntilOther",
    "run": "ignoreElements",
    "then": "thenEmpty thenMany",
    "throttle_first": "sampleFirst",
    "timer": "Mono.delay",
    "to_dict": "collectMap",
    "to_list": "collect collectList",
    "transform": "as",
    "using": "usingWhen",
}
_KOTLIN: Final = {
    "LatestProcessor": "MutableStateFlow",
    "MulticastProcessor": "MutableSharedFlow",
    "boundary": "buffer",
    "buffer": "chunked",
    "combine_latest": "combine",
    "concat_map": "flatMapConcat",
    "create": "callbackFlow channelFlow",
    "distinct_until_changed": "distinctUntilChangedBy",
    "do_finally": "onCompletion",
    "do_on_next": "onEach",
    "empty": "emptyFlow",
    "enumerate": "withIndex",
    "filter_map": "mapNotNull",
    "first": "firstOrNull",
    "flat_map": "flatMapMerge",
    "for_each": "collect",
    "from_aiter": "flow",
    "from_iterable": "asFlow",
    "from_queue": "consumeAsFlow receiveAsFlow",
    "just": "flowOf",
    "last": "lastOrNull",
    "of_type": "filterIsInstance",
    "on_backpressure_latest": "conflate",
    "on_error_resume": "catch",
    "reduce": "fold",
    "replay": "stateIn",
    "retry": "retryWhen",
    "run": "launchIn",
    "scan": "runningFold runningReduce",
    "share": "shareIn",
    "single": "singleOrNull",
    "skip": "drop",
    "skip_while": "dropWhile",
    "start_with": "onStart",
    "switch_if_empty": "onEmpty",
    "switch_map": "collectLatest flatMapLatest mapLatest transformLatest",
    "to_list": "toCollection",
    "to_queue": "produceIn",
    "zip_with": "zip",
}
_PEKKO: Final = {
    "all": "forall",
    "any": "exists",
    "boundary": "async buffer detach",
    "buffer": "grouped",
    "buffer_timeout": "groupedWeightedWithin groupedWithin",
    "buffer_until": "splitAfter",
    "combine_latest": "zipLatest",
    "concat_map": "flatMapConcat",
    "concat_with": "concat",
    "create": "queue",
    "defer": "lazySource",
    "delay_subscription": "initialDelay",
    "delimited": "Framing.delimiter",
    "distinct_until_changed": "dropRepeated",
    "do_finally": "watchTermination",
    "do_on_next": "wireTap",
    "enumerate": "zipWithIndex",
    "error": "failed",
    "filter_map": "collect",
    "first": "head headOption",
    "flat_map": "flatMapMerge mapConcat",
    "for_each": "foreach foreachAsync runForeach",
    "from_aiter": "unfoldAsync",
    "from_awaitable": "future lazyFuture",
    "from_iterable": "fromIterator",
    "from_thread": "unfoldResource",
    "generate": "unfold",
    "interval": "tick",
    "json_lines": "JsonFraming",
    "just": "single",
    "last": "lastOption",
    "map_async": "mapAsyncPartitioned mapAsyncUnordered",
    "merge": "mergePreferred mergePrioritized",
    "merge_with": "merge",
    "name": "named",
    "of_type": "collectType",
    "on_backpressure_latest": "conflate",
    "on_error_map": "mapError",
    "on_error_resume": "recoverWith recoverWithRetries",
    "on_error_return": "recover",
    "rate_limit": "throttle",
    "reduce": "fold",
    "repeat": "cycle",
    "retry": "RestartSource",
    "run": "ignore",
    "scan": "scanAsync statefulMap",
    "share": "BroadcastHub",
    "skip": "drop",
    "skip_while": "dropWhile",
    "sliding_window": "sliding",
    "start_with": "prepend",
    "switch_if_empty": "orElse",
    "take_until": "takeWithin",
    "timeout": "completionTimeout idleTimeout initialTimeout",
    "to_list": "collection seq",
    "transform": "via",
    "using": "mapWithResource",
    "zip_with": "zip",
}
_AIOSTREAM: Final = {
    "buffer": "chunks",
    "combine_latest": "ziplatest",
    "concat": "chain",
    "concat_map": "concat concatmap",
    "delay_subscription": "delay",
    "do_on_next": "action",
    "element_at": "getitem",
    "error": "throw",
    "flat_map": "flatmap flatten",
    "from_aiter": "iterate",
    "from_awaitable": "call",
    "log": "print",
    "map": "smap starmap",
    "map_async": "amap",
    "rate_limit": "spaceout",
    "repeat": "cycle",
    "scan": "accumulate",
    "skip_last": "skiplast",
    "skip_while": "dropwhile",
    "switch_map": "switch switchmap",
    "take_last": "takelast",
    "take_while": "takewhile until",
    "to_list": "list",
    "transform": "pipe",
}
_ITERTOOLS: Final = {
    "buffer": "batched",
    "concat": "chain",
    "concat_map": "chain.from_iterable",
    "filter": "filterfalse",
    "generate": "count",
    "group_by": "groupby",
    "map": "starmap",
    "repeat": "cycle",
    "scan": "accumulate",
    "share": "tee",
    "skip_while": "dropwhile",
    "take": "islice",
    "take_while": "takewhile",
    "zip": "zip_longest",
}
_ASYNCIO: Final = {
    "ConcurrencyLimit": "Semaphore",
    "delay": "sleep",
    "for_each": "TaskGroup",
    "from_queue": "Queue.get",
    "map_async": "as_completed gather",
    "map_in_thread": "run_in_executor to_thread",
    "race": "wait",
    "take_until": "Event",
    "timeout": "wait_for",
    "to_queue": "Queue.put",
}

ELSEWHERE: Final = {
    "Rx": _RX,
    "Reactor": _REACTOR,
    "Kotlin": _KOTLIN,
    "Pekko": _PEKKO,
    "aiostream": _AIOSTREAM,
    "itertools": _ITERTOOLS,
    "asyncio": _ASYNCIO,
}
"""By library, the names there of each name here. (Rx: RxJava, RxJS and RxPY.)"""
FUNCTIONS: Final = frozenset({"asyncio"})
"""Libraries whose names are not methods, so that a flow does not know them."""
_OTHERS: Final = "others"


class ForeignName(NamedTuple):
    """A name of other libraries for an operator."""

    there: str
    here: str
    libraries: tuple[str, ...]


def foreign_names() -> list[ForeignName]:
    """All of them, sorted: those of the libraries, and what else a flow knows."""
    found: dict[tuple[str, str], list[str]] = {}
    for there, here, library in _rows():
        found.setdefault((there, here), []).append(library)
    known = {in_snake_case(there) for there, _ in found}
    for there, here in FOREIGN_NAMES.items():
        if there not in known:
            found[there, here] = [_OTHERS]
    rows = [ForeignName(*names, tuple(libraries)) for names, libraries in found.items()]
    return sorted(rows, key=lambda row: (row.there.lower(), row.there, row.here))


def _rows() -> Iterator[tuple[str, str, str]]:
    for library, names in ELSEWHERE.items():
        for here, there in names.items():
            yield from ((each, here, library) for each in there.split())
