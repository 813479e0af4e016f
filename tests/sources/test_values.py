"""Sources of given values: their elements, ends and subscriptions."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

import reactive_aio as r
from reactive_aio import Flow
from reactive_aio.errors import AlreadySubscribed, NotAnElement
from reactive_aio.spec import Publisher
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from tests.cases import Needs

MANY = 1_000_000


def counter(state: int) -> tuple[int, int]:
    return state, state + 1


def then_nothing(n: int) -> Flow[int]:
    nothing: Flow[int] = r.empty()
    return r.range(n).concat_with(nothing)


def counted(n: int) -> Iterator[int]:
    yield from range(n)


def called(x: int) -> Flow[int]:
    return r.from_callable(lambda: x)


def broken() -> Iterator[int]:
    yield 1
    raise OSError("broken")


OF_LENGTH: Mapping[str, Callable[[int], Publisher[Any]]] = {
    "just": lambda n: r.just(*range(n)),
    "range": lambda n: r.range(n),
    "from_iterable: list": lambda n: r.from_iterable(list(range(n))),
    "defer: generator": lambda n: r.defer(lambda: counted(n)),
    "defer: flow": lambda n: r.defer(lambda: r.range(n)),
    "defer: over a boundary": lambda n: r.defer(lambda: r.range(n).boundary(2)),
    "generate": lambda n: r.generate(lambda x: (x, x + 1) if x < n else None, 0),
    "from_callable": lambda n: r.range(n).flat_map(called),
    "empty": then_nothing,
}

FAILING: Mapping[str, Callable[[], Publisher[Any]]] = {
    "error": lambda: r.error(OSError("no")),
    "error: made": lambda: r.error(lambda: OSError("no")),
    "from_iterable": lambda: r.defer(broken),
    "from_callable": lambda: r.from_callable(lambda: 1 // 0),
    "generate": lambda: r.generate(lambda x: (6 // x, x - 1), 3),
    "defer: factory raises": lambda: r.defer(lambda: r.just(1 // 0)),
    "defer: flow fails": lambda: r.defer(lambda: r.error(OSError)),
}

INFINITE: Mapping[str, Callable[[], Publisher[Any]]] = {
    "generate": lambda: r.generate(counter, 0),
    "defer": lambda: r.defer(lambda: r.generate(counter, 0)),
}


class TestJust:
    async def test_completes_with_the_last_demanded_element_rule_1_5(self) -> None:
        probe = SubscriberProbe[str](2).subscribed_to(r.just("a", "b"))
        assert probe.signals == ["a", "b", "|"]

    def test_none_is_refused_at_once_rule_2_13(self) -> None:
        with pytest.raises(NotAnElement, match=r"2\.13.*just"):
            r.just(1, None)

    def test_its_name_shows_a_few_elements(self) -> None:
        assert repr(r.just(1, 2, 3, 4)) == "<Flow just(1, 2, 3, …)>"

    async def test_without_elements_is_empty(self) -> None:
        assert await r.just().to_list() == []


class TestEmptyNeverError:
    async def test_empty_completes_without_demand(self) -> None:
        assert SubscriberProbe[Any]().subscribed_to(r.empty()).signals == ["|"]

    async def test_never_is_silent(self) -> None:
        probe = SubscriberProbe[Any](5).subscribed_to(r.never())
        assert probe.signals == []
        probe.cancel()
        assert not probe.is_terminated

    async def test_error_fails_without_demand_rule_1_4(self) -> None:
        error = OSError("no")
        assert SubscriberProbe[Any]().subscribed_to(r.error(error)).signals == [error]

    async def test_a_function_makes_an_error_for_each_subscription(self) -> None:
        flow = r.error(OSError)
        first, second = (SubscriberProbe[Any]().subscribed_to(flow).error for _ in range(2))
        assert isinstance(first, OSError)
        assert first is not second

    async def test_a_shared_error_does_not_collect_tracebacks(self) -> None:
        error = OSError("no")
        flow = r.error(error)
        lengths: list[int] = []
        for _ in range(3):
            SubscriberProbe[Any]().subscribed_to(flow)
            traceback, length = error.__traceback__, 0
            while traceback is not None:
                traceback, length = traceback.tb_next, length + 1
            lengths.append(length)
        assert len(set(lengths)) == 1

    async def test_a_factory_without_an_exception_is_a_type_error(self) -> None:
        probe = SubscriberProbe[Any]().subscribed_to(r.error(lambda: 5))  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]
        assert isinstance(probe.error, TypeError)

    def test_error_requires_an_exception(self) -> None:
        with pytest.raises(TypeError, match="cause"):
            r.error("no")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


class TestDefer:
    async def test_the_factory_is_called_for_each_subscription(self) -> None:
        made: list[int] = []

        def make() -> Flow[int]:
            made.append(1)
            return r.just(len(made))

        flow = r.defer(make)
        assert made == []
        assert await flow.to_list() == [1]
        assert await flow.to_list() == [2]

    @pytest.mark.parametrize("kind", ["iterable", "publisher", "asynchronous"])
    async def test_it_may_return_any_source(self, kind: str) -> None:
        class Foreign:
            def subscribe(self, subscriber: Any, /) -> None:
                r.range(3).subscribe(subscriber)

        sources: dict[str, Any] = {
            "iterable": [0, 1, 2],
            "publisher": Foreign(),
            "asynchronous": r.range(3).boundary(1).stream(),
        }
        assert await r.defer(lambda: sources[kind]).to_list() == [0, 1, 2]

    async def test_something_else_fails_the_flow(self) -> None:
        probe = SubscriberProbe[Any]().subscribed_to(r.defer(lambda: 4))  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]
        assert "defer: 4 (int)" in str(probe.error)

    async def test_demand_is_passed_through(self) -> None:
        inner = PublisherProbe[int]()
        probe = SubscriberProbe[int]().subscribed_to(r.defer(lambda: inner))
        assert inner.requests == []
        probe.request(2)
        inner.emit(1)
        probe.request(3)
        inner.emit(2)
        assert inner.requested == 5
        assert probe.signals == [1, 2]

    async def test_cancel_reaches_the_source_made(self) -> None:
        inner = PublisherProbe[int]()
        SubscriberProbe[int](1).subscribed_to(r.defer(lambda: inner)).cancel()
        assert inner.cancel_count == 1

    async def test_a_slow_subscriber_bounds_what_is_requested(self) -> None:
        inner = PublisherProbe[int]()
        flow = r.defer(lambda: inner)
        SubscriberProbe[int](MANY).subscribed_to(flow)
        assert inner.requests == [flow.bound().total]


class TestFromIterable:
    async def test_an_iterator_serves_one_subscription_rule_1_11(self) -> None:
        flow = r.from_iterable(iter([1, 2]))
        assert await flow.to_list() == [1, 2]
        error = SubscriberProbe[int]().subscribed_to(flow).error
        assert isinstance(error, AlreadySubscribed)
        assert "1.11" in str(error)

    async def test_cancel_closes_a_generator(self) -> None:
        closed: list[bool] = []

        def elements() -> Iterator[int]:
            try:
                yield from range(9)
            finally:
                closed.append(True)

        probe = SubscriberProbe[int](1).subscribed_to(r.from_iterable(elements()))
        probe.cancel()
        assert closed == [True]

    async def test_none_fails_the_flow_rule_2_13(self) -> None:
        probe = SubscriberProbe[Any](9).subscribed_to(r.from_iterable([1, None]))
        assert probe.elements == [1]
        assert isinstance(probe.error, NotAnElement)

    def test_something_that_is_not_iterable_is_refused(self) -> None:
        with pytest.raises(TypeError, match="from_iterable: 5"):
            r.from_iterable(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    def test_the_name_of_a_large_container_is_short_and_cheap(self) -> None:
        class Untouchable(list[int]):
            def __repr__(self) -> str:
                raise AssertionError("the whole container was shown")

        assert len(repr(r.from_iterable(list(range(MANY))))) < 60
        assert "Untouchable" in repr(r.from_iterable([Untouchable()]))


class TestFromCallable:
    async def test_it_is_called_with_the_first_request(self) -> None:
        called: list[int] = []

        def answer() -> int:
            called.append(1)
            return 7

        flow = r.from_callable(answer)
        probe = SubscriberProbe[int]().subscribed_to(flow)
        assert called == []
        probe.request(1)
        assert probe.signals == [7, "|"]
        assert await flow.to_list() == [7]
        assert called == [1, 1]

    async def test_none_fails_the_flow_rule_2_13(self) -> None:
        probe = SubscriberProbe[Any](1).subscribed_to(r.from_callable(lambda: None))
        assert "from_callable produced None" in str(probe.error)

    def test_a_value_is_refused(self) -> None:
        with pytest.raises(TypeError, match="just"):
            r.from_callable(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


class TestGenerate:
    async def test_one_call_for_one_requested(self) -> None:
        states: list[int] = []

        def step(state: int) -> tuple[str, int]:
            states.append(state)
            return str(state), state + 1

        probe = SubscriberProbe[str]().subscribed_to(r.generate(step, 5))
        assert states == []
        probe.request(2)
        assert (probe.signals, states) == (["5", "6"], [5, 6])

    async def test_a_step_that_returns_something_else_fails_the_flow(self) -> None:
        probe = SubscriberProbe[Any](1).subscribed_to(r.generate(lambda _: 5, 0))  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]
        assert "(element, state) or None" in str(probe.error)

    def test_something_that_is_not_callable_is_refused(self) -> None:
        with pytest.raises(TypeError, match="step"):
            r.generate([1], 0)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


class TestRange:
    @pytest.mark.parametrize("bounds", [(3,), (1, 3), (9, 1, -3), (0,)])
    async def test_takes_the_arguments_of_the_builtin(self, bounds: tuple[int, ...]) -> None:
        assert await r.range(*bounds).to_list() == list(range(*bounds))

    def test_refuses_what_the_builtin_refuses(self) -> None:
        with pytest.raises(ValueError, match="must not be zero"):
            r.range(0, 5, 0)


# -- the reference ---------------------------------------------------------------------------------
NEEDS: Needs = {
    "Make a flow": {
        "from given elements": "just",
        "from a list, a generator or another iterable": "from_iterable",
        "from the result of a plain function": "from_callable",
        "of numbers": "range",
        "of values that are computed one from the other": "generate",
        "that is made for each subscription": "defer",
        "without elements, one that fails, one that never ends": "empty error never",
    },
}


async def example_just() -> None:
    print(await r.just("tea", "milk").to_list())


async def example_empty() -> None:
    print(await r.empty().to_list())


async def example_never() -> None:
    print(await r.never().take_until(r.timer(0.1)).to_list())


async def example_error() -> None:
    payments = r.just(10, -1).concat_map(
        lambda amount: [amount] if amount > 0 else r.error(ValueError("negative"))
    )
    print(await payments.on_error_complete().to_list())


async def example_from_iterable() -> None:
    print(await r.from_iterable({"tea": 3, "milk": 1}.items()).to_list())


async def example_from_callable() -> None:
    numbers = iter([1, 2])
    counted = r.from_callable(lambda: next(numbers))
    print(await counted.first(), await counted.first())


async def example_defer() -> None:
    today = r.defer(lambda: r.just("computed", "for each subscriber"))
    print(await today.to_list())


async def example_generate() -> None:
    fibonacci = r.generate(lambda state: (state[0], (state[1], sum(state))), (0, 1))
    print(await fibonacci.take(8).to_list())


async def example_range() -> None:
    print(await r.range(0, 10, 3).to_list())
