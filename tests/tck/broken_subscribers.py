"""For each law for subscribers at least one subscriber that breaks it, and the expected verdict.

The documentation is generated from these tables.
"""

from functools import partial

from tests.tck.broken_candidate import BrokenCandidate
from tests.tck.flawed_subscriber import async_subscriber_with, subscriber_with

__all__ = ("BROKEN_BLACK_BOXES", "BROKEN_WHITE_BOXES")


def _row(law: str, rule: str, flaw: str, words: str) -> BrokenCandidate:
    return BrokenCandidate(law, flaw, partial(subscriber_with, *flaw.split(" and ")), rule, words)


def _async_row(law: str, rule: str, flaw: str, words: str) -> BrokenCandidate:
    make = partial(async_subscriber_with, *flaw.split(" and "))
    return BrokenCandidate(law, f"is asynchronous and {flaw}", make, rule, words)


CALLED = "was called because of"

BROKEN_BLACK_BOXES = [
    _row("spec201_requests_what_it_takes", "2.1", "never requests", "nothing is requested"),
    _row("spec201_requests_what_it_takes", "3.9", "requests 0", "request(0)"),
    _row("spec201_requests_what_it_takes", "2.13", "raises for an element", "ValueError"),
    _row("spec201_requests_what_it_takes", "2.13", "never ends a signal", "does not end"),
    _row("spec202_does_not_block_the_loop", "2.2", "computes in on_next",
         "on_next blocked the loop for"),
    _row("spec202_does_not_block_the_loop", "2.2", "computes in a callback of on_next",
         "on_next blocked the loop for"),
    _async_row("spec202_does_not_block_the_loop", "2.2", "computes in on_next",
               "blocked the loop for"),
    _row("spec203_calls_nothing_in_on_complete", "2.3", "cancels in on_complete", CALLED),
    _row("spec203_calls_nothing_in_on_complete", "2.3", "cancels in a task of on_complete",
         "cancel() was called because of on_complete"),
    _row("spec203_calls_nothing_in_on_error", "2.3", "cancels in on_error", CALLED),
    _row("spec203_calls_nothing_in_on_error", "2.3", "requests in a callback of on_error",
         "request(1) was called because of on_error"),
    _async_row("spec203_calls_nothing_in_on_error", "2.3", "cancels in a task of on_error", CALLED),
    _row("spec204_requests_nothing_after_the_end", "2.4", "requests after its end",
         "1 more were requested after the terminal signal"),
    _row("spec205_cancels_a_second_subscription", "2.5", "accepts any subscription",
         "has not been cancelled"),
    _row("spec205_cancels_a_second_subscription", "2.5", "requests from a second subscription",
         "1 were requested from the second subscription"),
    _row("spec207_calls_one_at_a_time", "2.7", "requests on two threads", "on another thread"),
    _row("spec208_accepts_elements_after_cancel", "2.13", "cancels and raises after cancel",
         "it is cancelled"),
    _row("spec209_takes_completion_after_a_request", "2.13", "raises in on_complete", "the end"),
    _row("spec209_takes_completion_at_once", "2.13",
         "raises for a terminal signal before any element", "too early"),
    _row("spec210_takes_an_error_after_a_request", "2.13", "raises the error of on_error",
         "on_error(RuntimeError('broken')) raised RuntimeError('broken')"),
    _row("spec210_takes_an_error_at_once", "2.13",
         "raises for a terminal signal before any element", "too early"),
    _row("spec212_compares_subscriptions_by_identity", "2.12",
         "mistakes an equal subscription for its own", "equals the first"),
    _row("spec213_refuses_none_in_on_subscribe", "2.13", "accepts None as a subscription",
         "on_subscribe(None)"),
    _row("spec213_refuses_none_in_on_next", "2.13", "accepts None as an element",
         "on_next(None) returned normally"),
    _row("spec213_refuses_none_in_on_next", "2.13", "raises KeyError for None", "KeyError"),
    _async_row("spec213_refuses_none_in_on_next", "2.13", "accepts None as an element",
               "on_next(None) returned normally"),
    _row("spec213_refuses_none_in_on_error", "2.13", "accepts None as an error",
         "on_error(None) returned normally"),
    _row("spec213_returns_normally", "2.13", "raises for an unusual error", "Unusual('broken')"),
    _row("spec301_uses_its_own_subscription", "3.1", "calls another subscriber's subscription",
         "the subscription of another one was called"),
    _row("spec308_takes_all_it_has_requested", "2.13", "raises for the second element",
         "one is enough"),
    _row("spec310_takes_elements_inside_request", "2.13", "raises for an element",
         "sent inside of request"),
    _row("spec311_takes_the_end_inside_request", "2.13", "raises in on_complete",
         "sent inside of request"),
    _row("spec314_takes_the_end_after_cancel", "2.13",
         "cancels and raises for a terminal signal after cancel", "it is cancelled"),
    _row("spec315_takes_an_error_after_cancel", "2.13",
         "cancels and raises for a terminal signal after cancel", "it is cancelled"),
    _row("spec316_takes_an_error_inside_request", "2.13", "raises the error of on_error",
         "sent inside of request"),
]  # fmt: skip
"""Black boxes."""

BROKEN_WHITE_BOXES = [
    _row("setup_probe_and_puppet_work", "setup", "does not report to the probe",
         "register_on_subscribe"),
    _row("setup_probe_and_puppet_work", "2.13", "has a puppet that raises", "no strings"),
    _row("setup_probe_and_puppet_work", "2.6", "ignores the command to cancel",
         "cancel() has not come"),
    _row("spec201_probed_requests_what_it_takes", "2.1", "never requests", "nothing is requested"),
    _row("spec202_probed_does_not_block_the_loop", "2.2", "computes in on_next",
         "on_next blocked the loop for"),
    _row("spec203_probed_calls_nothing_in_on_complete", "2.3",
         "requests in a callback of on_complete", CALLED),
    _row("spec203_probed_calls_nothing_in_on_error", "2.3", "cancels in on_error", CALLED),
    _row("spec204_probed_requests_nothing_after_the_end", "2.4", "requests after its end",
         "1 more were requested"),
    _row("spec205_probed_cancels_a_second_subscription", "2.5", "accepts any subscription",
         "has not been cancelled"),
    _row("spec206_cancels_on_command", "2.6", "ignores the command to cancel",
         "cancel() has not come"),
    _row("spec207_probed_calls_one_at_a_time", "2.7", "requests on two threads",
         "on another thread"),
    _row("spec208_probed_accepts_elements_after_cancel", "2.13", "raises after cancel",
         "it is cancelled"),
    _row("spec209_probed_takes_completion_after_a_request", "2.9", "does not report completion",
         "has not reached the probe"),
    _row("spec209_probed_takes_completion_at_once", "2.9", "does not report completion",
         "has not reached the probe"),
    _row("spec210_probed_takes_an_error_after_a_request", "2.10", "reports another error",
         "ValueError('another') was received"),
    _row("spec210_probed_takes_an_error_at_once", "2.10", "does not report errors",
         "has not reached the probe"),
    _row("spec211_receives_in_order", "2.11", "reverses elements", "[0, 1, 2"),
    _row("spec212_probed_compares_subscriptions_by_identity", "2.12",
         "mistakes an equal subscription for its own", "equals the first"),
    _row("spec213_probed_refuses_none_in_on_subscribe", "2.13", "accepts None as a subscription",
         "on_subscribe(None) returned normally"),
    _row("spec213_probed_refuses_none_in_on_next", "2.13", "reports None to the probe",
         "passed on to the probe"),
    _row("spec213_probed_refuses_none_in_on_error", "2.13", "reports None to the probe",
         "passed on to the probe"),
    _row("spec213_probed_returns_normally", "2.13", "raises for an unusual error",
         "Unusual('broken')"),
    _row("spec301_probed_uses_its_own_subscription", "3.1",
         "calls another subscriber's subscription", "the subscription of another one was called"),
    _row("spec308_requests_add_up", "3.8", "requests one element for any command",
         "nothing is requested"),
    _row("spec310_probed_takes_elements_inside_request", "2.13", "raises for an element",
         "sent inside of request"),
    _row("spec311_probed_takes_the_end_inside_request", "2.9", "does not report completion",
         "has not reached the probe"),
    _row("spec314_probed_takes_the_end_after_cancel", "2.13",
         "raises for a terminal signal after cancel", "it is cancelled"),
    _row("spec315_probed_takes_an_error_after_cancel", "2.13",
         "raises for a terminal signal after cancel", "it is cancelled"),
    _row("spec316_probed_takes_an_error_inside_request", "2.10", "does not report errors",
         "has not reached the probe"),
]  # fmt: skip
"""White boxes."""
