"""The types that checkers infer for the synchronous operators; only read, not run."""

import operator
from collections.abc import AsyncIterable, AsyncIterator
from io import IOBase
from typing import Any, TypeGuard, assert_type

from reactive_aio import Flow, Publisher, empty, from_iterable, just, range as flow_range

numbers: Flow[int] = flow_range(3)
words: Flow[str] = from_iterable(["a", "b"])
optional: Flow[int | str] = just(1, "a")


def parsed(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def is_text(element: int | str) -> TypeGuard[str]:
    return isinstance(element, str)


def takes_iterable(elements: AsyncIterable[int]) -> None: ...
def takes_publisher(publisher: Publisher[int | str]) -> None: ...
def wider(flow: Flow[int]) -> Flow[float]:
    return flow  # covariant


# transform
assert_type(just(1, 2).map(str), Flow[str])
assert_type(numbers.map(lambda x: x + 1), Flow[int])
assert_type(numbers.map(lambda x: f"{x}").map(lambda s: s.upper()), Flow[str])
assert_type(numbers.filter(lambda x: x > 1), Flow[int])
assert_type(optional.filter(is_text), Flow[str])
assert_type(words.filter_map(parsed), Flow[int])
assert_type(optional.of_type(str), Flow[str])
assert_type(numbers.scan(operator.add), Flow[int])
assert_type(numbers.scan(lambda total, x: total + x), Flow[int])
assert_type(numbers.scan(lambda text, x: f"{text}{x}", seed=""), Flow[str])
assert_type(words.enumerate(), Flow[tuple[int, str]])
assert_type(words.enumerate(1).map(lambda pair: pair[1]), Flow[str])
assert_type(words.pairwise(), Flow[tuple[str, str]])
assert_type(words.transform(lambda flow: flow.map(len)), Flow[int])
assert_type(words.transform(lambda flow: flow.bound().total), int | None)

# select
assert_type(words.take(2), Flow[str])
assert_type(words.take_while(str.islower, inclusive=True), Flow[str])
assert_type(words.take_last(2), Flow[str])
assert_type(words.skip(2), Flow[str])
assert_type(words.skip_while(str.islower), Flow[str])
assert_type(words.skip_last(1), Flow[str])
assert_type(words.distinct(), Flow[str])
assert_type(words.distinct(len, max_keys=3), Flow[str])
assert_type(words.distinct_until_changed(lambda text: text[0]), Flow[str])

# fill
assert_type(numbers.start_with(1, 2), Flow[int])
assert_type(numbers.start_with("a"), Flow[int | str])
assert_type(numbers.default_if_empty("none"), Flow[int | str])
assert_type(empty().default_if_empty(1), Flow[int])

# chunk
assert_type(numbers.buffer(2), Flow[list[int]])
assert_type(numbers.buffer(2, step=1).map(sum), Flow[int])
assert_type(numbers.sliding_window(2), Flow[tuple[int, ...]])
assert_type(words.buffer_until(str.islower), Flow[list[str]])

# clock
assert_type(words.timestamp(), Flow[tuple[float, str]])
assert_type(words.elapsed(), Flow[tuple[float, str]])

# look
assert_type(numbers.do_on_next(print), Flow[int])
assert_type(numbers.do_on_next(lambda x: x + 1), Flow[int])
assert_type(numbers.do_on_error(lambda error: error.args), Flow[int])
assert_type(numbers.do_on_complete(lambda: None), Flow[int])
assert_type(numbers.do_on_cancel(lambda: None), Flow[int])
assert_type(numbers.do_on_request(lambda n: n + 1), Flow[int])
assert_type(numbers.do_on_discard(print), Flow[int])
assert_type(numbers.do_on_discard(lambda file: file.close(), only=IOBase), Flow[int])
assert_type(numbers.do_finally(lambda how: how.upper()), Flow[int])
assert_type(numbers.log("numbers"), Flow[int])
assert_type(numbers.name("numbers"), Flow[int])
assert_type(numbers.progress(total=3), Flow[int])

# a flow is what it should be
assert_type(aiter(numbers), AsyncIterator[int])
takes_iterable(numbers)
takes_publisher(numbers)
wider(numbers)


async def iterated() -> None:
    async for element in numbers.map(str):
        assert_type(element, str)
    async with numbers.stream(prefetch=2) as elements:
        async for number in elements:
            assert_type(number, int)


# What must not pass: a comment that is not needed fails the check as well.
def wrong() -> list[Any]:
    return [
        numbers.map(3),  # type: ignore[arg-type]
        numbers.map(lambda x: x.upper()),  # type: ignore[attr-defined]
        words.do_on_next(operator.index),  # type: ignore[arg-type]
        words.take("2"),  # type: ignore[arg-type]
        words.take_while(str.islower, True),  # type: ignore[call-arg]
    ]
