"""The types that checkers infer for sources, combinations and terminals; only read, not run."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import assert_type

from reactive_aio import (
    Flow,
    GroupedFlow,
    LatestProcessor,
    MulticastProcessor,
    RateLimit,
    ReplayProcessor,
    RetryPolicy,
    Run,
    UnicastProcessor,
    Windowed,
    WindowFlow,
    combine_latest,
    concat,
    from_aiter,
    from_awaitable,
    from_callable,
    from_iterable,
    from_lines,
    from_process,
    from_thread,
    interval,
    just,
    merge,
    race,
    range as flow_range,
    timer,
    zip as flow_zip,
)

numbers: Flow[int] = flow_range(3)
words: Flow[str] = from_iterable(["a", "b"])


async def size(text: str) -> int:
    return len(text)


async def is_short(text: str) -> bool:
    return len(text) < 3


def letters(text: str) -> Flow[str]:
    return from_iterable(text)


async def ticks() -> AsyncIterator[float]:
    yield 1.0


# sources
assert_type(just(1, 2), Flow[int])
assert_type(from_callable(lambda: "a"), Flow[str])
assert_type(from_aiter(ticks), Flow[float])
assert_type(from_awaitable(lambda: size("a")), Flow[int])
assert_type(from_thread(["a"]), Flow[str])
assert_type(from_lines("log.txt"), Flow[str])
assert_type(from_lines(Path("log.txt"), follow=True, poll=1), Flow[str])
assert_type(from_process(["ls", Path("/")], cwd="/"), Flow[bytes])
assert_type(from_process(["cat"], stdin=words.map(str.encode)).lines(), Flow[str])
assert_type(interval(1), Flow[int])
assert_type(timer(1), Flow[int])
assert_type(UnicastProcessor[int]().map(str), Flow[str])
assert_type(MulticastProcessor[str]().take(2), Flow[str])
assert_type(ReplayProcessor[str](3).take(2), Flow[str])
assert_type(LatestProcessor("a").value, str)
assert_type(LatestProcessor(3).map(str), Flow[str])

# several upstreams
assert_type(words.flat_map(letters, concurrency=2), Flow[str])
assert_type(words.concat_map(letters), Flow[str])
assert_type(words.switch_map(letters), Flow[str])
assert_type(words.expand(letters), Flow[str])
assert_type(words.window(3), Flow[Flow[str]])
assert_type(words.window_timeout(3, 1, align=True), Flow[WindowFlow[str]])
assert_type(words.window_reduce(1, lambda n, word: n + len(word), 0), Flow[Windowed[int]])
assert_type(words.group_by(len), Flow[GroupedFlow[int, str]])
assert_type(words.group_by(len).map(lambda group: group.key), Flow[int])
assert_type(words.group_by(len, idle=9).flat_map(lambda group: group.map(str.upper)), Flow[str])
assert_type(words.share(grace=1).replay(2, ttl=9).cache(), Flow[str])
assert_type(merge(numbers, flow_range(2)), Flow[int])
assert_type(merge(numbers, words, priority=[1, 2]), Flow[int | str])
assert_type(race(numbers, words), Flow[int | str])
assert_type(combine_latest(numbers, words), Flow[tuple[int, str]])
assert_type(combine_latest(numbers, words, combine=lambda n, text: text * n), Flow[str])
assert_type(words.with_latest_from(numbers), Flow[tuple[str, int]])
assert_type(words.with_latest_from(numbers, combine=lambda text, n: len(text) + n), Flow[int])
assert_type(words.switch_if_empty(numbers), Flow[str | int])
assert_type(words.take_until(timer(1)), Flow[str])
assert_type(merge(numbers, words), Flow[int | str])
assert_type(concat(words, words), Flow[str])
assert_type(concat(words, [1, 2]), Flow[str | int])
assert_type(merge(*[words, words]), Flow[str])
assert_type(flow_zip(numbers, words), Flow[tuple[int, str]])
assert_type(flow_zip(numbers, words, numbers), Flow[tuple[int, str, int]])

# awaiting, errors, demand, time
assert_type(words.map_async(size), Flow[int])
assert_type(words.map_async(size, concurrency=4, ordered=False), Flow[int])
assert_type(
    words.map_async(
        size,
        key=len,
        retry=RetryPolicy(retry_after=lambda _: 1.0),
        timeout=3,
        on_error=lambda text, error: (text.upper(), error.args),
        limiter=RateLimit(100, per=60, cost=len),
    ),
    Flow[int],
)
assert_type(words.filter_async(is_short), Flow[str])
assert_type(words.map_in_thread(len, chunk=9), Flow[int])
assert_type(words.map_in_process(len, ordered=False), Flow[int])
assert_type(words.map(str.encode).lines(), Flow[str])
assert_type(words.map(str.encode).delimited(b";"), Flow[bytes])
assert_type(words.into(UnicastProcessor[str]()), UnicastProcessor[str])
assert_type(words.on_error_return("none"), Flow[str])
assert_type(words.retry(2), Flow[str])
assert_type(words.boundary(8).on_backpressure_latest(), Flow[str])
assert_type(words.timeout(1), Flow[str])
assert_type(words.timeout(total=1), Flow[str])
assert_type(words.buffer_timeout(3, 0.1), Flow[list[str]])
assert_type(
    words.buffer_timeout(3, 0.1, weight=len, max_weight=100, until=lambda text: text.endswith(".")),
    Flow[list[str]],
)
assert_type(words.on_error_complete(), Flow[str])
assert_type(words.on_error_map(lambda error: OSError(str(error))), Flow[str])
assert_type(words.repeat(3), Flow[str])
assert_type(words.restart(3), Flow[str])
assert_type(words.running(), Run[str])
assert_type(words.running(print, concurrency=3), Run[str])
assert_type(words.limit_rate(3).on_backpressure_error(), Flow[str])
assert_type(words.delay(1).delay_subscription(1).rate_limit(3), Flow[str])
assert_type(words.rate_limit(3, per=2).rate_limit(limiter=RateLimit(100)), Flow[str])
assert_type(words.debounce(1).sample(1), Flow[str])
assert_type(words.throttle_first(1, on_drop=print).throttle_latest(1), Flow[str])
assert_type(
    words.debounce(1)
    .switch_map(letters)
    .map(len)
    .with_latest_from(words)
    .filter(lambda pair: pair[0] > 1)
    .buffer_until(bool)
    .take_until(timer(1))
    .timestamp()
    .map(lambda each: each[1])
    .switch_if_empty([[(1, "a")]]),
    Flow[list[tuple[int, str]]],
)


async def ends() -> None:
    assert_type(await words.to_list(limit=3), list[str])
    assert_type(await words.count(), int)
    assert_type(await words.first(), str)
    assert_type(await words.first(default=None), str | None)
    assert_type(await numbers.sum(), int)
    assert_type(await words.to_dict(len), dict[int, str])
    assert_type(await numbers.reduce(lambda total, n: total + n), int)
    async for number in numbers:
        assert_type(number, int)
    async with words.stream(prefetch=4) as elements:
        async for word in elements:
            assert_type(word, str)
