"""What does each operator cost that runs in the loop of its flow, compared with the bare loop?"""

import json
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from time import monotonic, time
from typing import Any

from reactive_aio import Flow, from_iterable, range as flow_range

from ..functions import even, increment
from ..runner.question import Question
from ..subscribers import Summing

Receive = Callable[[Any], object]
COUNT = 300_000
GOAL = 1.3


class Counting(Summing):
    """Adds up the lengths of lists and strings."""

    def on_next(self, element: Any) -> None:
        self.total += len(element)


class Firsts(Summing):
    """Adds up the first ones of pairs."""

    def on_next(self, element: Any) -> None:
        self.total += element[0]


class Seconds(Summing):
    """Adds up the second ones of pairs."""

    def on_next(self, element: Any) -> None:
        self.total += element[1]


def inline(
    name: str,
    operate: Callable[[Flow[Any]], Flow[Any]],
    loop: Callable[[Iterable[Any], Receive], object],
    *,
    subscriber: type[Summing] = Summing,
    source: Callable[[int], Iterable[Any]] = range,
) -> Question:
    """The question about one operator; *loop* does the same explicitly."""
    question = Question(f"`{name}`", COUNT)

    @question.handwritten("a for loop that calls `on_next`")
    async def handwritten(count: int) -> int:
        received = subscriber()
        loop(source(count), received.on_next)
        return received.total

    @question.ours(f"`{name}` → `on_next`", goal=GOAL)
    async def ours(count: int) -> int:
        flow = flow_range(count) if source is range else from_iterable(source(count))
        return await subscriber().sum_of(operate(flow))

    return question


# -- transform -------------------------------------------------------------------------------------
def each(elements: Iterable[int], receive: Receive) -> None:
    for element in elements:
        receive(element)


def incremented(elements: Iterable[int], receive: Receive) -> None:
    for element in elements:
        receive(increment(element))


map_ = inline("map", lambda flow: flow.map(increment), incremented)


def filtered(elements: Iterable[int], receive: Receive) -> None:
    for element in elements:
        if even(element):
            receive(element)


filter_ = inline("filter", lambda flow: flow.filter(even), filtered)


def even_or_none(element: int) -> int | None:
    return None if element & 1 else element


def filter_mapped(elements: Iterable[int], receive: Receive) -> None:
    for element in elements:
        if (mapped := even_or_none(element)) is not None:
            receive(mapped)


filter_map = inline("filter_map", lambda flow: flow.filter_map(even_or_none), filter_mapped)


def of_ints(elements: Iterable[object], receive: Receive) -> None:
    for element in elements:
        if isinstance(element, int):
            receive(element)


of_type = inline("of_type", lambda flow: flow.of_type(int), of_ints)


def add(one: int, other: int) -> int:
    return one + other


def scanned(elements: Iterable[int], receive: Receive) -> None:
    state = 0
    for element in elements:
        state = add(state, element)
        receive(state)


scan = inline("scan", lambda flow: flow.scan(add, seed=0), scanned)


def enumerated(elements: Iterable[int], receive: Receive) -> None:
    for pair in enumerate(elements):
        receive(pair)


enumerate_ = inline("enumerate", lambda flow: flow.enumerate(), enumerated, subscriber=Seconds)


def paired(elements: Iterable[int], receive: Receive) -> None:
    rest = iter(elements)
    last = next(rest)
    for element in rest:
        receive((last, element))
        last = element


pairwise = inline("pairwise", lambda flow: flow.pairwise(), paired, subscriber=Firsts)


def started(elements: Iterable[int], receive: Receive) -> None:
    receive(0)
    each(elements, receive)


start_with = inline("start_with", lambda flow: flow.start_with(0), started)
default_if_empty = inline("default_if_empty", lambda flow: flow.default_if_empty(0), each)


# -- clock -----------------------------------------------------------------------------------------
def timed(elements: Iterable[int], receive: Receive) -> None:
    for element in elements:
        receive((time(), element))


timestamp = inline("timestamp", lambda flow: flow.timestamp(), timed, subscriber=Seconds)


def with_intervals(elements: Iterable[int], receive: Receive) -> None:
    before = monotonic()
    for element in elements:
        now = monotonic()
        receive((now - before, element))
        before = now


elapsed = inline("elapsed", lambda flow: flow.elapsed(), with_intervals, subscriber=Seconds)


# -- select ----------------------------------------------------------------------------------------
def taken(elements: Iterable[int], receive: Receive) -> None:
    left = COUNT
    for element in elements:
        receive(element)
        left -= 1
        if not left:
            break


take = inline("take", lambda flow: flow.take(COUNT), taken)


def below(element: int) -> bool:
    return element < COUNT


def taken_while(elements: Iterable[int], receive: Receive) -> None:
    for element in elements:
        if not below(element):
            break
        receive(element)


take_while = inline("take_while", lambda flow: flow.take_while(below), taken_while)


def last_ten(elements: Iterable[int], receive: Receive) -> None:
    each(deque(elements, 10), receive)


take_last = inline("take_last", lambda flow: flow.take_last(10), last_ten)


def skipped(elements: Iterable[int], receive: Receive) -> None:
    each(islice(elements, 10, None), receive)


skip = inline("skip", lambda flow: flow.skip(10), skipped)


def negative(element: int) -> bool:
    return element < 0


def skipped_while(elements: Iterable[int], receive: Receive) -> None:
    skipping = True
    for element in elements:
        if skipping and negative(element):
            continue
        skipping = False
        receive(element)


skip_while = inline("skip_while", lambda flow: flow.skip_while(negative), skipped_while)


def but_the_last_ten(elements: Iterable[int], receive: Receive) -> None:
    held: deque[int] = deque()
    for element in elements:
        held.append(element)
        if len(held) > 10:
            receive(held.popleft())


skip_last = inline("skip_last", lambda flow: flow.skip_last(10), but_the_last_ten)


def distinct_ones(elements: Iterable[int], receive: Receive) -> None:
    seen: set[int] = set()
    for element in elements:
        if element not in seen:
            seen.add(element)
            receive(element)


distinct = inline("distinct", lambda flow: flow.distinct(max_keys=COUNT), distinct_ones)


def changed(elements: Iterable[int], receive: Receive) -> None:
    last = None
    for element in elements:
        if element != last:
            last = element
            receive(element)


distinct_until_changed = inline(
    "distinct_until_changed", lambda flow: flow.distinct_until_changed(), changed
)


# -- chunk -----------------------------------------------------------------------------------------
def chunks(elements: Iterable[int], receive: Receive) -> None:
    chunk: list[int] = []
    for element in elements:
        chunk.append(element)
        if len(chunk) == 10:
            receive(chunk)
            chunk = []
    if chunk:
        receive(chunk)


buffer = inline("buffer(10)", lambda flow: flow.buffer(10), chunks, subscriber=Counting)


def tenth(element: int) -> bool:
    return element % 10 == 9


def chunks_until(elements: Iterable[int], receive: Receive) -> None:
    chunk: list[int] = []
    for element in elements:
        chunk.append(element)
        if tenth(element):
            receive(chunk)
            chunk = []
    if chunk:
        receive(chunk)


buffer_until = inline(
    "buffer_until", lambda flow: flow.buffer_until(tenth), chunks_until, subscriber=Counting
)


def windows_of_ten(elements: Iterable[int], receive: Receive) -> None:
    held: deque[int] = deque(maxlen=10)
    for element in elements:
        held.append(element)
        if len(held) == 10:
            receive([*held])


sliding_window = inline(
    "sliding_window(10)",
    lambda flow: flow.sliding_window(10),
    windows_of_ten,
    subscriber=Counting,
)


# -- framing: the elements are chunks of 8 KiB, which end anywhere ---------------------------------
LINES = b"".join(b"%d\n" % n for n in range(100_000, 101_170))


def blocks(count: int) -> list[bytes]:
    """About *count* lines."""
    text = LINES * (count // 1170 + 1)
    return [text[k : k + 8192] for k in range(0, len(text), 8192)]


def split_lines(chunks: Iterable[bytes], receive: Receive) -> None:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            receive(line.decode())


lines = inline("lines", lambda flow: flow.lines(), split_lines, subscriber=Counting, source=blocks)


def parsed_lines(chunks: Iterable[bytes], receive: Receive) -> None:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            receive(json.loads(line))


json_lines = inline("json_lines", lambda flow: flow.json_lines(), parsed_lines, source=blocks)


def delimited_parts(chunks: Iterable[bytes], receive: Receive) -> None:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for part in whole:
            receive(part)


delimited = inline(
    "delimited",
    lambda flow: flow.delimited(b"\n"),
    delimited_parts,
    subscriber=Counting,
    source=blocks,
)


# -- side effects ----------------------------------------------------------------------------------
def observe(_: object) -> None:
    """A callback."""


def observed(elements: Iterable[int], receive: Receive) -> None:
    for element in elements:
        observe(element)
        receive(element)


def ended(elements: Iterable[int], receive: Receive) -> None:
    each(elements, receive)
    observe(None)


do_on_next = inline("do_on_next", lambda flow: flow.do_on_next(observe), observed)
do_on_error = inline("do_on_error", lambda flow: flow.do_on_error(observe), each)
do_on_complete = inline(
    "do_on_complete", lambda flow: flow.do_on_complete(lambda: observe(None)), ended
)
do_on_cancel = inline("do_on_cancel", lambda flow: flow.do_on_cancel(lambda: observe(None)), each)
do_on_discard = inline("do_on_discard", lambda flow: flow.do_on_discard(observe), each)
do_on_request = inline("do_on_request", lambda flow: flow.do_on_request(observe), each)
do_finally = inline("do_finally", lambda flow: flow.do_finally(observe), ended)
name = inline("name", lambda flow: flow.name("orders"), each)
