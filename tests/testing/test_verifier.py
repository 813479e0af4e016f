# pyright: reportUnknownLambdaType=false
"""The steps of a verifier pass or fail as the flow does, and a failure names the step."""

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio import (
    empty,
    error,
    from_iterable,
    interval,
    just,
    never,
    range as numbers,
    to_flow,
)
from reactive_aio.spec import Subscriber
from reactive_aio.testing import PublisherProbe, SubscriberProbe
from reactive_aio.testing.marbles import Marbles
from reactive_aio.testing.verifier import Verification, expect


async def failure(verification: Verification) -> str:
    with pytest.raises(AssertionError) as caught:
        await verification
    return str(caught.value)


@pytest.mark.parametrize("turns", [None, 0, 2])
class TestSuccesses:
    async def test_elements_and_completion(self, turns: int | None) -> None:
        await expect(just(1, 2, 3), turns=turns).subscription().next(1, 2).next(3).complete()
        await expect(empty(), turns=turns).complete()
        await expect(numbers(100), turns=turns).next_count(99).next(99).complete()

    async def test_demand_step_by_step(self, turns: int | None) -> None:
        flow = expect(from_iterable("abc"), request=0, turns=turns).nothing()
        await flow.request(1).next("a").nothing().request(2).next("b").next("c").complete()
        await flow.request(1).next("a").cancel()

    async def test_errors(self, turns: int | None) -> None:
        broken = expect(error(ValueError("boom")), turns=turns)
        await broken.error()
        await broken.error(ValueError)
        await broken.error(ValueError("boom"))
        await broken.error(ValueError, match="^bo")
        await broken.error(lambda raised: raised.args == ("boom",))

    async def test_predicates(self, turns: int | None) -> None:
        await expect(just(4), turns=turns).next_matching(lambda n: n % 2 == 0, "even").complete()

    async def test_cancellation_and_endless_flows(self, turns: int | None) -> None:
        await expect(never(), turns=turns).nothing().cancel()
        await expect(just(1), turns=turns, request=1).next(1).complete()
        await expect(to_flow(PublisherProbe[int]()), turns=turns).never_ends(0.01)


@pytest.mark.virtual_time
class TestTime:
    async def test_time_passes_between_steps(self) -> None:
        await expect(interval(60).take(2)).nothing(59).next(0).after(60).next(1).complete()
        assert asyncio.get_running_loop().time() == pytest.approx(120)

    async def test_a_flow_that_runs_for_a_day(self) -> None:
        await expect(interval(60)).within(61).next(0).never_ends(24 * 3600)

    async def test_a_signal_may_come_late_but_in_time(self) -> None:
        await expect(Marbles[object]("a---b-|"), within=3).next("a").within(9).next("b").complete()

    async def test_a_signal_after_the_timeout_is_a_failure(self) -> None:
        words = await failure(expect(never(), within=7).next_count(1).complete())
        assert words.startswith(
            "step 1 of 2, .next_count(1): element 1 of 1 was expected, and nothing came"
        )


def test_verify_creates_a_loop_with_virtual_time() -> None:
    expect(lambda: interval(3600)).within(9999).next(0, 1).cancel().verify()
    with pytest.raises(AssertionError, match=re.escape("step 1 of 1, .complete(): on_complete()")):
        expect(just(1)).complete().verify()


class TestPublisherProbes:
    async def test_actions_are_called(self) -> None:
        publisher = PublisherProbe[int]()

        async def end() -> None:
            await asyncio.sleep(0)
            publisher.complete()

        steps = expect(publisher).call(lambda: publisher.emit(1)).next(1)
        await steps.call(end).complete()

    async def test_the_failure_of_another_probe_is_passed_on(self) -> None:
        publisher = PublisherProbe[int]()
        steps = expect(publisher).call(lambda: publisher.expect_cancel(within=0.001))
        words = await failure(steps.cancel())
        assert words.startswith("cancel() must come within 0.001 s\n\ndemand ")

    async def test_it_is_cancelled_after_a_failure(self) -> None:
        publisher = PublisherProbe[int]()
        await failure(expect(publisher).call(lambda: publisher.emit(1)).next(2).complete())
        assert publisher.cancel_count == 1

    async def test_it_is_cancelled_once(self) -> None:
        publisher = PublisherProbe[int]()
        await expect(publisher).cancel()
        assert publisher.cancel_count == 1

    @pytest.mark.parametrize(
        ("steps", "words"),
        [
            ("emit emit", "1.1: an element came without demand"),
            ("emit complete complete", "1.7: a signal came after the end"),
            ("emit subscribe", "2.12: on_subscribe came twice"),
            ("none", "2.13: None came as an element"),
        ],
    )
    async def test_a_publisher_that_breaks_a_rule_fails(self, steps: str, words: str) -> None:
        publisher = PublisherProbe[Any]()
        actions: dict[str, Any] = {
            "emit": lambda: publisher.emit(1),
            "none": lambda: publisher.emit(None),
            "complete": publisher.complete,
            "subscribe": lambda: publisher.subscriber.on_subscribe(publisher),
        }

        def act() -> None:
            for step in steps.split():
                actions[step]()

        expected = expect(publisher, request=1).call(act).next_count(1)
        assert words in await failure(expected.complete())

    async def test_signals_that_overlap_fail(self) -> None:
        publisher = PublisherProbe[int]()

        async def both() -> None:
            await asyncio.gather(publisher.send(1), publisher.send(2))

        steps = expect(publisher, turns=3).subscription().call(both)
        assert "1.3: a signal began" in await failure(steps.next_count(2).cancel())


class TestFailures:
    async def test_the_message_shows_the_steps_the_signal_and_a_drawing(self) -> None:
        words = await failure(expect(just(1, 2), request=2).next(1).next(3).complete())
        assert words.splitlines() == [
            "step 2 of 3, .next(3): 3 was expected, and on_next(2) came",
            "",
            "    expect(<Flow just(1, 2)>, request=2)",
            "        .next(1)",
            "  >     .next(3)",
            "        .complete()",
            "",
            "demand   >---2-------",
            "signals    >---1-2-|",
            "                 ^-- 3 was expected, and on_next(2) came",
            "         (>: subscribed; a number: requested)",
        ]

    @pytest.mark.parametrize(
        ("steps", "words"),
        [
            (
                lambda: expect(just(1, 2)).next(1).cancel(),
                "step 2 of 2, .cancel(): nothing was expected, and on_next(2) came",
            ),
            (lambda: expect(just(1)).complete(), "on_complete() was expected, and on_next(1) came"),
            (
                lambda: expect(empty()).error(ValueError),
                "on_error(ValueError) was expected, and on_complete() came",
            ),
            (
                lambda: expect(error(ValueError("a"))).error(KeyError),
                "on_error(KeyError) was expected, and on_error(ValueError('a')) came",
            ),
            (
                lambda: expect(error(ValueError("a"))).error(match="b"),
                "an error with 'b' in its words was expected",
            ),
            (
                lambda: expect(just(3)).next_matching(lambda n: n % 2 == 0, "even").complete(),
                "even was expected, and on_next(3) came",
            ),
            (
                lambda: expect(just(3)).next_count(2).complete(),
                "element 2 of 2 was expected, and on_complete() came",
            ),
            (
                lambda: expect(just(3)).nothing().complete(),
                "nothing was expected, and on_next(3) came",
            ),
            (
                lambda: expect(empty()).never_ends(),
                "no end was expected for 60 s, and on_complete() came",
            ),
        ],
    )
    async def test_another_signal_is_named_with_what_was_expected(
        self, steps: Callable[[], Verification], words: str
    ) -> None:
        assert words in await failure(steps())

    @pytest.mark.virtual_time
    async def test_no_subscription(self) -> None:
        class Mute:
            def subscribe(self, subscriber: Subscriber[int], /) -> None:
                pass

        words = await failure(expect(Mute()).subscription().cancel())
        assert "on_subscribe did not come within 5 s" in words


class TestMisuse:
    async def test_verify_inside_a_loop_is_refused(self) -> None:
        with pytest.raises(RuntimeError, match="await instead"):
            expect(just(1)).next(1).complete().verify()

    def test_steps_that_are_never_awaited_warn(self) -> None:
        with pytest.warns(RuntimeWarning, match=r"complete\(\) was never awaited"):
            expect(just(1)).next(1).complete()

    async def test_steps_without_a_last_one_are_not_run(self) -> None:
        steps: Any = expect(just(1)).next(1)
        last = r"end the steps with complete\(\), error\(\), cancel\(\) or never_ends\(\)"
        with pytest.raises(AttributeError, match=rf"no attribute 'verify'; {last}, .* verify\(\)$"):
            steps.verify()
        with pytest.raises(TypeError, match=rf"^expect\(.*\)\.next\(1\) cannot be .*; {last}$"):
            await steps
        with pytest.raises(AttributeError, match=r"^'Expectation' .* no attribute 'nonsense'$"):
            steps.nonsense  # noqa: B018

    async def test_beginnings_can_be_shared(self) -> None:
        begun = expect(just(1, 2)).next(1)
        await begun.next(2).complete()
        await begun.next_count(1).complete()


async def test_other_probes_are_not_affected() -> None:
    probe = SubscriberProbe[int](1).subscribed_to(just(1))
    await expect(just(1)).next(1).complete()
    assert await probe.next_element() == 1
