"""What other libraries call the options of a function, for the error about an unknown keyword."""

from collections.abc import Awaitable, Callable, Iterable
from functools import wraps
from inspect import Parameter, iscoroutinefunction, signature
from re import compile as pattern
from sys import modules
from types import FunctionType, ModuleType
from typing import Any, Final, cast

from .foreign_names import NO_EQUIVALENT, in_snake_case

__all__ = ("FOREIGN_OPTIONS", "explain_foreign_options")

FOREIGN_OPTIONS: Final = {
    # functions and values
    "mapper": "callback f fn func function project selector transform transformer",
    "predicate": "cond condition f filter fn func function pred stop_predicate test where",
    "accumulator": "f fn func function mapper operator reducer",
    "reducer": "accumulator f fn func function operator",
    "callback": "action consumer f fn func function handler mapper observer on_next",
    "function": "action callback consumer f fn func handler mapper on_next supplier target",
    "factory": "f fn func function supplier",
    "key": "comparer key_fn key_func key_mapper key_selector keyfunc partition_key",
    "seed": "identity init initial initial_value initializer start",
    "default": "default_value fallback value",
    "element": "default default_value value",
    "value": "default default_value element item",
    "initial": "initial_state initial_value seed start value",
    "iterable": "data elements it items sequence values xs",
    "path": "file filename",
    # how many
    "concurrency": (
        "concurrent jobs limit max_concurrency max_concurrent max_in_flight max_tasks max_workers "
        "maxsize n_jobs parallel parallelism pool_size task_limit workers"
    ),
    "prefetch": "batch_size buffer buffer_size capacity max_buffer_size maxsize queue_size",
    "capacity": (
        "backlog buffer buffer_size bufsize extra_buffer_capacity limit max_buffer_size max_size "
        "maxlen maxsize queue_size size"
    ),
    "size": (
        "batch_size buffer_size chunk_size chunksize count length max_size maxsize n window_size"
    ),
    "chunk": "batch_size chunk_size chunksize",
    "step": "advance every shift skip stride",
    "count": "amount limit n num number size",
    "index": "at n nth position",
    "times": "count n num repeat_count repeats",
    "n": (
        "buffer_size calls capacity count elements limit max_concurrency max_rate maxsize permits "
        "rate replay replay_size size tokens total_tokens value"
    ),
    "limit": "max_bytes max_items max_length max_line_length max_size maxlen maxsize n size",
    "max_groups": "breadth groups limit max_keys max_size maxsize",
    "max_keys": "limit max_size maxsize",
    "workers": "max_workers n_jobs processes",
    "ahead": "buffer_size max_buffer_size prefetch window",
    "high": "high_tide prefetch prefetch_rate",
    "low": "low_tide",
    # time
    "by": "delay delay_time due_time duetime duration interval period seconds timespan wait",
    "delay": (
        "backoff base_delay by due_time duetime duration first_backoff initial_delay interval "
        "min_backoff seconds sleep start wait wait_fixed"
    ),
    "period": "delay every interval seconds tick timespan",
    "initial_delay": "delay due_time duetime start",
    "quiet": "delay due_time duetime duration idle interval quiet_period seconds timeout wait",
    "every": "delay duration interval period sampler seconds timespan",
    "per": (
        "delay duration every interval period seconds time time_period timespan window "
        "window_duration"
    ),
    "duration": "delay every interval max_time max_wait period seconds span time timeout timespan",
    "each": "due_time duetime duration idle interval seconds timeout",
    "total": "deadline max_time overall",
    "first": "initial",
    "timeout": "deadline max_time per_attempt seconds time_limit",
    "ttl": "expire expires_in max_age seconds window",
    "idle": "duration idle_timeout timeout ttl",
    "moment": "notifier other publisher until",
    # failures
    "retry": "attempts max_attempts max_retries policy retries retry_count retry_policy tries",
    "policy": (
        "attempts count max_attempts max_retries n num_retries retries retry retry_count "
        "retry_policy times tries"
    ),
    "attempts": (
        "count max_attempts max_retries max_tries n num_retries retries retry_count stop "
        "stop_max_attempt_number times tries"
    ),
    "factor": "backoff_factor base exp_base exponential_base multiplier",
    "maximum": "cap max max_backoff max_concurrency max_delay max_limit max_value max_wait",
    "minimum": "min min_limit min_value",
    "within": "deadline max_elapsed max_elapsed_time max_time",
    "only": (
        "error error_type errors exception exception_type exception_types exceptions on retry "
        "retry_for retry_on types"
    ),
    "on_error": "error_handler error_strategy errors handle_error on_exception return_exceptions",
    "fallback": "handler other resume",
    "failures": "fail_max failure_threshold max_failures threshold",
    "reset": "cooldown recovery_timeout reset_timeout timeout",
    # order, and what does not fit
    "ordered": "in_order keep_order order preserve_order",
    "overflow": (
        "backpressure backpressure_strategy mode on_buffer_overflow on_overflow overflow_strategy "
        "policy strategy"
    ),
    "on_drop": "on_dropped on_overflow on_undelivered_element",
    "limiter": (
        "capacity_limiter limit limits rate_limit rate_limiter sem semaphore throttle throttler"
    ),
    "pool": "executor limiter process_pool thread_pool",
}
"""What a parameter is called elsewhere, in snake case; a function has few of these parameters."""

_LEFT_OUT: Final = {"scheduler": NO_EQUIVALENT["publish_on"]}
_UNKNOWN: Final = pattern(r"\(\) got an unexpected keyword argument '(\w+)'").search
_TOO_MANY: Final = pattern(r"\(\) takes .* positional arguments? but .* given$").search
_RECEIVERS: Final = frozenset(("self", "source"))
_BY_NAME: Final = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)

_explained: Final[dict[Callable[..., Any], Callable[..., Any]]] = {}


def explain_foreign_options(owner: type | ModuleType, names: Iterable[str]) -> None:
    """Let the functions that *owner* has under *names* say what a wrong keyword is called here.

    Of a class it is the constructor that says so.
    """
    for name in names:
        value = vars(owner)[name]
        if isinstance(value, FunctionType):
            setattr(owner, name, _explaining(value))
        elif isinstance(value, type) and isinstance(vars(value).get("__init__"), FunctionType):
            constructor = cast("Any", value)
            constructor.__init__ = _explaining(constructor.__init__)


def _explaining(function: FunctionType) -> Callable[..., Any]:
    """*function*, whose TypeErrors about its call are explained once they are raised."""
    if function in _explained:
        return _explained[function]

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except TypeError as error:
            _explain(error, function)
            raise

    @wraps(function)
    async def call_async(*arguments: Any, **options: Any) -> Any:
        try:
            result: Awaitable[Any] = function(*arguments, **options)
        except TypeError as error:
            _explain(error, function)
            raise
        return await result

    explaining: Any = call_async if iscoroutinefunction(function) else call
    _explained[function] = _explained[explaining] = explaining
    # Pickled functions are looked up in their module, and have to be what is found there.
    home = modules[function.__module__]
    if vars(home).get(function.__qualname__) is function:
        setattr(home, function.__qualname__, explaining)
    return cast("Callable[..., Any]", explaining)


def _explain(error: TypeError, function: FunctionType) -> None:
    """Complete the message of *error* if the call of *function* itself has raised it."""
    trace = error.__traceback__
    if trace is not None and trace.tb_next is not None:  # it comes from inside of the function
        return
    message = str(error)
    if unknown := _UNKNOWN(message):
        given = unknown[1]
        error.args = (f"{message[: unknown.end()]}; {_hint(given, function)}",)
    elif _TOO_MANY(message) and (options := _names(function, Parameter.KEYWORD_ONLY)):
        error.args = (f"{message}; these are given by name: {', '.join(options)}",)


def _hint(given: str, function: FunctionType) -> str:
    from difflib import get_close_matches  # looked for only after a mistake

    own, snake = _names(function, *_BY_NAME), in_snake_case(given)
    same = [name for name in own if snake in FOREIGN_OPTIONS.get(name, "").split()]
    if found := same or get_close_matches(snake, own, n=1):
        return f"here it is called {found[0]}"
    if reason := _LEFT_OUT.get(snake):
        return reason
    return f"its parameters are {', '.join(own)}" if own else "it has no options"


def _names(function: FunctionType, *kinds: Any) -> list[str]:
    parameters = signature(function).parameters.values()
    return [each.name for each in parameters if each.kind in kinds and each.name not in _RECEIVERS]
