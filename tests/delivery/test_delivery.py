"""A `Delivery` by itself: it is settled once."""

from typing import Any

import pytest

from reactive_aio.delivery import AlreadySettled, Delivery, deliveries


def test_ack_calls_the_function_of_the_source() -> None:
    calls: list[str] = []
    delivery = Delivery("a", lambda: calls.append("ack"))
    assert (delivery.is_settled, repr(delivery)) == (False, "<Delivery 'a' is open>")
    delivery.ack()
    assert delivery.is_settled
    assert calls == ["ack"]


def test_nack_calls_the_function_of_the_source_with_the_error() -> None:
    calls: list[Exception] = []
    error = ValueError()
    Delivery("a", lambda: None, calls.append).nack(error)
    assert calls == [error]


def test_a_source_that_takes_nothing_back_needs_no_nack() -> None:
    delivery = Delivery("a", lambda: None)
    delivery.nack(ValueError())
    assert repr(delivery) == "<Delivery 'a' was nacked>"


@pytest.mark.parametrize("second", ["ack", "nack"])
def test_a_second_call_raises_and_changes_nothing(second: str) -> None:
    calls: list[object] = []
    delivery = Delivery("a", lambda: calls.append("ack"), calls.append)
    delivery.ack()
    with pytest.raises(AlreadySettled, match=rf"^{second}\(\): the delivery was acknowledged; cal"):
        delivery.ack() if second == "ack" else delivery.nack(ValueError())
    assert calls == ["ack"]


def nothing(_: object) -> None:
    """Work that is done at once."""


async def test_one_that_belongs_to_a_flow_is_settled_by_it() -> None:
    delivery = Delivery("a", lambda: None)
    await deliveries([delivery]).ack_after(lambda _: None).run()
    with pytest.raises(AlreadySettled, match="the delivery belongs to a flow"):
        delivery.ack()


async def test_one_delivery_serves_one_flow() -> None:
    delivery = Delivery("a", lambda: None)
    flow = deliveries([delivery]).ack_after(lambda _: None)
    await flow.run()
    with pytest.raises(AlreadySettled, match=r"deliveries\(\): the delivery belongs to a flow"):
        await flow.run()


async def test_outside_a_flow_nothing_awaits_its_functions() -> None:
    async def ack() -> None: ...

    with pytest.raises(TypeError, match="which nothing would await"):
        Delivery("a", ack).ack()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, print), "value is None"),
        (("a", "b"), "ack must be a function"),
        (("a", nothing), "ack is called with no argument"),
        (("a", print, 3), "nack must be a function"),
        (("a", print, lambda: None), "nack is called with 1 argument"),
    ],
)
def test_wrong_arguments_are_refused(arguments: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Delivery(*arguments)


def test_an_attempt_is_at_least_the_first() -> None:
    with pytest.raises(ValueError, match="attempt must be at least 1, not 0"):
        Delivery("a", print, attempt=0)


def test_the_reason_of_a_nack_is_an_exception() -> None:
    reason: Any = "no"
    with pytest.raises(TypeError, match=r"nack\(error\): an Exception is needed, not 'no'"):
        Delivery("a", print).nack(reason)
