"""The kit judged: for each law for subscribers and processors one that breaks it.

A table: the documentation is generated from it.
"""

from functools import partial

from tests.tck.flawed_processor import passing
from tests.tck.broken_publishers import BrokenTrial
from tests.tck.flawed_subscriber import asynchronous, receiver

__all__ = ("PROCESSORS", "SUBSCRIBERS", "WHITE_BOXES")


def _row(law: str, rule: str, flaw: str, words: str) -> BrokenTrial:
    return BrokenTrial(law, flaw, partial(receiver, *flaw.split(" and ")), rule, words)


def _later(law: str, rule: str, flaw: str, words: str) -> BrokenTrial:
    make = partial(asynchronous, *flaw.split(" and "))
    return BrokenTrial(law, f"is asynchronous and {flaw}", make, rule, words)


def _passes(law: str, rule: str, flaw: str, words: str) -> BrokenTrial:
    return BrokenTrial(law, flaw, partial(passing, *flaw.split(" and ")), rule, words)


CALLED = "was called because of"

SUBSCRIBERS = [
    _row("spec201_requests_what_it_takes", "2.1", "never requests", "nothing is requested"),
    _row("spec201_requests_what_it_takes", "3.9", "requests nothing at all", "request(0)"),
    _row("spec201_requests_what_it_takes", "2.13", "raises for an element", "ValueError"),
    _row("spec201_requests_what_it_takes", "2.13", "never ends a signal", "does not end"),
    _row("spec202_does_not_block_the_loop", "2.2", "computes in on_next",
         "on_next held up the loop for 0.1 s"),
    _row("spec202_does_not_block_the_loop", "2.2", "computes in a callback of on_next",
         "on_next held up the loop for 0.1 s"),
    _later("spec202_does_not_block_the_loop", "2.2", "computes in on_next", "held up the loop for"),
    _row("spec203_calls_nothing_in_on_complete", "2.3", "cancels in on_complete", CALLED),
    _row("spec203_calls_nothing_in_on_complete", "2.3",
         "cancels in a task of on_complete", "cancel() was called because of on_complete"),
    _row("spec203_calls_nothing_in_on_error", "2.3", "cancels in on_error", CALLED),
    _row("spec203_calls_nothing_in_on_error", "2.3",
         "requests in a callback of on_error", "request(1) was called because of on_error"),
    _later("spec203_calls_nothing_in_on_error", "2.3", "cancels in a task of on_error", CALLED),
    _row("spec204_requests_nothing_after_the_end", "2.4", "goes on after its end",
         "1 more were requested after the terminal signal"),
    _row("spec205_cancels_a_second_subscription", "2.5", "takes any subscription",
         "has not been cancelled"),
    _row("spec205_cancels_a_second_subscription", "2.5", "requests from a second subscription",
         "1 were requested from the second subscription"),
    _row("spec207_calls_one_at_a_time", "2.7", "requests on two threads", "on another thread"),
    _row("spec208_accepts_elements_after_cancel", "2.13", "cancels and raises after cancel",
         "it is cancelled"),
    _row("spec209_takes_completion_after_a_request", "2.13", "raises at the end", "the end"),
    _row("spec209_takes_completion_at_once", "2.13", "raises when ended before it has begun",
         "too early"),
    _row("spec210_takes_an_error_after_a_request", "2.13", "raises the error",
         "on_error(RuntimeError('broken')) raised RuntimeError('broken')"),
    _row("spec210_takes_an_error_at_once", "2.13", "raises when ended before it has begun",
         "too early"),
    _row("spec212_compares_subscriptions_by_identity", "2.12",
         "takes an equal subscription for its own", "equals the first"),
    _row("spec213_refuses_none_in_on_subscribe", "2.13", "takes None for a subscription",
         "on_subscribe(None)"),
    _row("spec213_refuses_none_in_on_next", "2.13", "takes None for an element",
         "on_next(None) returned normally"),
    _row("spec213_refuses_none_in_on_next", "2.13", "raises whatever it likes", "KeyError"),
    _later("spec213_refuses_none_in_on_next", "2.13", "takes None for an element",
           "on_next(None) returned normally"),
    _row("spec213_refuses_none_in_on_error", "2.13", "takes None for an error",
         "on_error(None) returned normally"),
    _row("spec213_returns_normally", "2.13", "raises for an unusual error", "Unusual('broken')"),
    _row("spec301_uses_its_own_subscription", "3.1", "shares its subscription",
         "the subscription of another one was called"),
    _row("spec308_takes_all_it_has_requested", "2.13", "raises for the second element",
         "one is enough"),
    _row("spec310_takes_elements_inside_request", "2.13", "raises for an element",
         "sent inside of request"),
    _row("spec311_takes_the_end_inside_request", "2.13", "raises at the end",
         "sent inside of request"),
    _row("spec314_takes_the_end_after_cancel", "2.13",
         "cancels and raises for an end after cancel", "it is cancelled"),
    _row("spec315_takes_an_error_after_cancel", "2.13",
         "cancels and raises for an end after cancel", "it is cancelled"),
    _row("spec316_takes_an_error_inside_request", "2.13", "raises the error",
         "sent inside of request"),
]  # fmt: skip
"""Black boxes."""

WHITE_BOXES = [
    _row("setup_probe_and_puppet_work", "setup", "tells no probe", "register_on_subscribe"),
    _row("setup_probe_and_puppet_work", "2.13", "its puppet raises", "no strings"),
    _row("setup_probe_and_puppet_work", "2.6", "keeps what it needs no more",
         "cancel() has not come"),
    _row("spec201_requests_on_command", "2.1", "never requests", "nothing is requested"),
    _row("spec202_probed_does_not_block_the_loop", "2.2", "computes in on_next",
         "on_next held up the loop for"),
    _row("spec203_probed_calls_nothing_in_on_complete", "2.3",
         "requests in a callback of on_complete", CALLED),
    _row("spec203_probed_calls_nothing_in_on_error", "2.3", "cancels in on_error", CALLED),
    _row("spec204_probed_requests_nothing_after_the_end", "2.4", "goes on after its end",
         "1 more were requested"),
    _row("spec205_probed_cancels_a_second_subscription", "2.5", "takes any subscription",
         "has not been cancelled"),
    _row("spec206_cancels_on_command", "2.6", "keeps what it needs no more",
         "cancel() has not come"),
    _row("spec207_probed_calls_one_at_a_time", "2.7", "requests on two threads",
         "on another thread"),
    _row("spec208_probed_accepts_elements_after_cancel", "2.13", "raises after cancel",
         "it is cancelled"),
    _row("spec209_probed_takes_completion_after_a_request", "2.9", "loses completion",
         "has not reached the probe"),
    _row("spec209_probed_takes_completion_at_once", "2.9", "loses completion",
         "has not reached the probe"),
    _row("spec210_probed_takes_an_error_after_a_request", "2.10", "tells another error",
         "ValueError('another') was received"),
    _row("spec210_probed_takes_an_error_at_once", "2.10", "loses errors",
         "has not reached the probe"),
    _row("spec211_receives_in_order", "2.11", "turns elements round", "[0, 1, 2"),
    _row("spec212_probed_compares_subscriptions_by_identity", "2.12",
         "takes an equal subscription for its own", "equals the first"),
    _row("spec213_probed_refuses_none_in_on_subscribe", "2.13", "takes None for a subscription",
         "on_subscribe(None) returned normally"),
    _row("spec213_probed_refuses_none_in_on_next", "2.13", "passes None on",
         "passed on to the probe"),
    _row("spec213_probed_refuses_none_in_on_error", "2.13", "passes None on",
         "passed on to the probe"),
    _row("spec213_probed_returns_normally", "2.13", "raises for an unusual error",
         "Unusual('broken')"),
    _row("spec301_probed_uses_its_own_subscription", "3.1", "shares its subscription",
         "the subscription of another one was called"),
    _row("spec308_requests_add_up", "3.8", "requests one however many are ordered",
         "nothing is requested"),
    _row("spec310_probed_takes_elements_inside_request", "2.13", "raises for an element",
         "sent inside of request"),
    _row("spec311_probed_takes_the_end_inside_request", "2.9", "loses completion",
         "has not reached the probe"),
    _row("spec314_probed_takes_the_end_after_cancel", "2.13", "raises for an end after cancel",
         "it is cancelled"),
    _row("spec315_probed_takes_an_error_after_cancel", "2.13", "raises for an end after cancel",
         "it is cancelled"),
    _row("spec316_probed_takes_an_error_inside_request", "2.10", "loses errors",
         "has not reached the probe"),
]  # fmt: skip
"""White boxes."""

PROCESSORS = [
    _passes("spec104_fails_all_its_subscribers", "1.4", "fails its first subscriber only",
            "not passed on"),
    _passes("spec201_keeps_earlier_demand", "2.1", "forgets demand of long ago",
            "nothing is requested"),
    _passes("spec401_passes_on_what_it_receives", "4.1", "sends something else",
            "what came is another element"),
    _passes("spec402_passes_an_error_on_at_once", "4.2", "hides errors", "not passed on"),
    _passes("spec402_passes_an_error_on_at_once", "4.2", "replaces errors",
            "ValueError('another') came instead"),
    _passes("spec402_requests_nothing_after_an_error", "4.2",
            "hides errors and goes on after an error", "3 more were requested after on_error"),
]  # fmt: skip
"""Processors."""
