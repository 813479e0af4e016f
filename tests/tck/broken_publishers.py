"""For each law for publishers at least one publisher that breaks it, and the expected verdict.

The documentation is generated from this table.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from reactive_aio.tck import Candidate, Outcome
from tests.tck.broken_candidate import BrokenCandidate
from tests.tck.flawed_publisher import AwaitablePublisher, FlawedPublisher, NaivePublisher

__all__ = ("BROKEN_PUBLISHERS", "publisher_with")


def publisher_with(*flaws: str, **options: Any) -> Candidate:
    """A candidate whose publishers all have the same flaws."""

    def closing(n: int, closed: Callable[[], None]) -> FlawedPublisher:
        return FlawedPublisher(n, *flaws, closed=closed)

    return Candidate(
        name=f"a publisher that {' and '.join(flaws) or 'conforms'}",
        publisher=lambda n: FlawedPublisher(n, *flaws),
        failing_publisher=lambda: FlawedPublisher(2, *flaws, fails=True),
        infinite_publisher=lambda: FlawedPublisher(float("inf"), *flaws),
        closing_publisher=closing,
        **options,
    )


def limited() -> Candidate:
    def publisher(n: int) -> FlawedPublisher:
        if n == 3:
            raise MemoryError("three are too many")
        return FlawedPublisher(n)

    return Candidate(name="a factory that cannot make its max_elements", publisher=publisher,
                   max_elements=3)  # fmt: skip


def _row(
    law: str, rule: str, flaw: str, words: str, outcome: Outcome = Outcome.FAIL
) -> BrokenCandidate:
    return BrokenCandidate(
        law, flaw, partial(publisher_with, *flaw.split(" and ")), rule, words, outcome
    )


def _optional(law: str, rule: str, flaw: str, words: str) -> BrokenCandidate:
    """An optional feature that the publisher does not offer."""
    return _row(law, rule, flaw, words, Outcome.NOT_JUDGED)


_SETUP = [
    BrokenCandidate(
        "setup_can_make_max_elements",
        "cannot make its max_elements",
        limited,
        "setup",
        "the factory publisher(3) raised MemoryError",
    ),
    BrokenCandidate(
        "setup_max_depth_fits_the_stack",
        "declares a depth of a million",
        partial(publisher_with, max_depth=10**6),
        "setup",
        "max_depth is 1000000, and Python's recursion limit is",
    ),
    _row("setup_makes_a_stream_of_one", "setup", "loses the first element", "came before the end"),
    _row(
        "setup_makes_a_stream_of_one",
        "setup",
        "never terminates",
        "publisher(1) sent 1 elements and",
    ),
    _row("setup_makes_a_stream_of_three", "setup", "fails instead of completing", "(3) failed"),
]

_SIGNALS = [
    _row("spec102_completes_with_less_than_requested", "1.2", "fails instead of completing",
         "it failed instead of completing"),
    _row("spec102_completes_with_less_than_requested", "1.2", "never terminates",
         "no terminal signal"),
    _row("spec103_does_not_overlap_awaited_signals", "1.3", "overlaps awaited signals",
         "began before on_next had ended"),
    _row("spec103_does_not_overlap_its_failure", "1.3", "overlaps awaited signals",
         "began before on_next had ended"),
    _row("spec103_signals_one_at_a_time", "1.3", "sends from several threads",
         "came on another thread while a signal was under way"),
    _row("spec104_signals_its_failure", "1.4", "completes instead of failing",
         "completed instead of failing"),
    _row("spec104_signals_its_failure", "1.4", "never terminates", "no terminal signal"),
    _row("spec105_completes_a_finite_stream", "1.5", "never terminates", "no terminal signal came"),
    _row("spec105_completes_a_finite_stream", "1.1", "loses the first element", "came before"),
    _row("spec105_completes_an_empty_stream", "1.5", "never terminates", "no terminal signal came"),
    _row("spec106_counts_as_cancelled_after_its_end", "1.7", "answers requests after its end",
         "on_error came after the terminal signal"),
    _row("spec106_counts_as_cancelled_after_its_failure", "1.7", "answers requests after its end",
         "on_error came after the terminal signal"),
    _row("spec107_is_silent_after_its_end", "1.7", "terminates twice",
         "on_complete came after the term"),
    _row("spec107_is_silent_after_its_failure", "1.7", "terminates twice",
         "on_error came after the ter"),
    _optional("spec310_sends_inside_request", "3.10", "handles requests later", "come later"),
    _optional("spec311_ends_inside_request", "3.11", "handles requests later", "comes later"),
]  # fmt: skip

_SUBSCRIBING = [
    _row("spec109_never_raises_from_subscribe", "1.9", "raises in subscribe",
         "subscribe() raised RuntimeError('not today')"),
    _row("spec109_never_raises_from_subscribe", "1.9", "ignores all but the first subscriber",
         "on_subscribe has not come"),
    _row("spec109_refuses_by_on_error", "1.9", "begins with an error",
         "on_error came before on_subscribe"),
    _row("spec109_rejects_none_as_subscriber", "1.9", "accepts subscribe(None)",
         "did not raise TypeError"),
    _row("spec109_rejects_none_as_subscriber", "1.9", "raises in subscribe", "not a TypeError"),
    _row("spec109_subscribes_first", "1.9", "begins with an element", "came before on_subscribe"),
    _row("spec110_serves_or_refuses_the_next_subscriber", "1.9",
         "ignores all but the first subscriber", "on_subscribe has not come"),
    _row("spec110_serves_or_refuses_the_next_subscriber", "1.10", "starves its second subscriber",
         "the second subscriber received neither elements nor an end"),
    _row("spec110_takes_the_same_subscriber_twice", "1.1", "sends once per subscription",
         "2 were requested in all, 3 came"),
    _optional("spec111_takes_two_subscribers", "1.11", "refuses its second subscriber",
              "one was refused: RuntimeError('one is enough')"),
    _optional("spec111_serves_two_subscribers", "1.11", "starves its second subscriber",
              "one received neither an element nor completion"),
    _optional("spec111_sends_all_to_each_one_by_one", "1.11", "starves its second subscriber",
              "one of three did not receive 5 elements"),
    _optional("spec111_sends_all_to_each_one_by_one", "1.11", "never terminates", "no completion"),
    _optional("spec111_sends_all_to_each_requested_at_once", "1.11", "sends random elements",
              "not all received the same elements in the same order"),
    _optional("spec111_sends_all_to_each_and_completes", "1.11", "never terminates",
              "no completion"),
    _row("spec212_subscribes_once", "2.12", "subscribes twice", "on_subscribe was called again"),
]  # fmt: skip

_DEMAND = [
    _row("spec101_sends_no_more_than_requested", "1.1", "ignores demand",
         "0 were requested in all, 1 came"),
    _row("spec101_sends_no_more_than_requested", "1.1", "sends one too many",
         "1 were requested in all, 2 came"),
    _row("spec101_infinite_sends_no_more_than_requested", "1.1", "ignores demand",
         "3 were requested in all, 4 came"),
    _row("spec207_takes_calls_from_changing_threads", "2.7", "ignores requests from other threads",
         "did not all come"),
    _row("spec207_takes_calls_from_changing_threads", "2.7",
         "wakes its loop without call_soon_threadsafe", "another thread called loop.call_soon"),
    _row("spec301_takes_requests_outside_of_signals", "3.1", "counts requests only inside signals",
         "did not all come"),
    _row("spec302_takes_requests_inside_signals", "3.2", "ignores requests inside signals",
         "did not all come"),
    _row("spec302_infinite_takes_requests_inside_signals", "3.2", "ignores requests inside signals",
         "did not all come"),
    _row("spec303_does_not_recurse", "3.3", "sends inside on_next",
         "on_next was called inside on_next"),
    _row("spec303_does_not_recurse", "3.3", "grows its stack",
         "the stack grows with every request inside on_next"),
    _row("spec303_infinite_does_not_recurse", "3.3", "grows its stack", "the stack grows with"),
    _row("spec308_adds_requests_up", "3.8", "counts only the last request", "did not all come"),
    _row("spec309_refuses_zero", "3.9", "ignores an invalid request",
         "request(0) was not answered"),
    _row("spec309_refuses_zero", "3.9", "answers an invalid request with another error",
         "not by a ValueError"),
    _row("spec309_refuses_a_negative_number", "3.9", "ignores an invalid request",
         "request(-1) was not answered"),
    _row("spec309_refuses_a_negative_number", "3.9",
         "forgets an invalid request at the next valid one", "as request(1) followed at once"),
    _row("spec309_names_the_problem", "3.9", "answers an invalid request vaguely",
         "the answer does not say what was wrong: 'no'"),
    _row("spec316_request_returns_normally", "3.16", "raises for an invalid request",
         "raised ValueError"),
    _row("spec316_request_returns_normally", "3.16", "returns something from request",
         "returned 2, not None"),
    _row("spec317_takes_the_largest_demand", "3.17", "counts with 32 bits", "made it fail"),
    _row("spec317_adds_up_to_the_largest_demand", "3.17", "counts with 32 bits", "made it fail"),
    _row("spec317_takes_more_than_the_largest_demand", "3.17", "fails beyond the largest demand",
         "made it fail"),
    _row("spec304_request_returns_quickly", "3.4", "computes in request",
         "request() kept its caller waiting for"),
    _row("spec304_yields_to_the_loop", "3.4", "hogs the loop", "the loop had no turn for"),
]  # fmt: skip

_CANCELLATION = [
    _row("spec108_cancel_triggers_no_signal", "1.8", "answers cancel by completing",
         "cancel() was answered by 1 signals"),
    _row("spec108_stops_after_cancel", "1.8", "ignores cancel", "after cancel()"),
    _row("spec108_infinite_stops_after_cancel", "1.8", "ignores cancel", "after cancel()"),
    _row("spec305_cancel_returns_quickly", "3.5", "computes in cancel", "kept its caller, or the"),
    _row("spec305_cancels_from_another_thread", "3.5", "ignores cancel from other threads",
         "after cancel() from another thread"),
    _row("spec305_cancels_from_another_thread", "3.5",
         "wakes its loop without call_soon_threadsafe", "another thread called loop.call_soon"),
    _row("spec306_ignores_requests_after_cancel", "3.6", "is revived by a request",
         "signals came after cancel() and request()"),
    _row("spec307_ignores_repeated_cancel", "3.15", "raises in a second cancel",
         "cancel() raised RuntimeError('cancelled already')"),
    _row("spec307_ignores_repeated_cancel", "3.7", "answers a second cancel",
         "signals came after cancel()"),
    _row("spec312_cancel_stops_the_publisher", "3.12", "ignores cancel", "after cancel()"),
    _row("spec313_releases_the_subscriber", "3.13", "keeps references to its subscribers",
         "the subscriber is still referred to, by objects of ['list']"),
    _optional("spec314_cancel_shuts_the_publisher_down", "3.14", "never cleans up",
              "nothing was released after cancel()"),
    _row("spec315_cancel_returns_normally", "3.15", "raises in a second cancel",
         "cancel() raised RuntimeError('cancelled already')"),
    _row("spec213_cancels_a_subscriber_that_raises", "2.13",
         "continues after its subscriber raises",
         "signals came after the subscriber had raised in on_"),
    _row("spec213_survives_a_subscriber_that_raises_in_on_error", "1.7", "terminates twice",
         "on_error came after the terminal signal"),
]  # fmt: skip

_LIBRARY = [
    _row("library1_sends_the_same_elements_for_any_demand", "L.1", "sends random elements",
         "other elements came than"),
    _row("library1_sends_the_same_elements_for_any_demand", "L.1",
         "loses the last requested element", "did not all come"),
    _row("library2_stops_immediately_after_cancel", "L.2", "cancels later", "came after cancel()"),
    _row("library3_cleans_up_once", "L.3", "never cleans up", "nothing was released after"),
    _row("library3_cleans_up_once", "L.3", "cleans up twice",
         "resources were released 2 times after"),
    _row("library4_keeps_context_variables", "L.4", "forgets the context",
         "the variable was 'nothing', at subscribe 'as subscribed'"),
    _row("library5_leaves_no_task", "L.5", "leaves a task",
         "tasks remain: <coroutine object FlawedSub"),
    _row("library6_leaves_no_thread", "L.6", "leaves a thread", "threads remain: Thread-"),
    _row("library7_releases_the_subscriber_after_completion", "L.7",
         "keeps references to its subscribers",
         "after on_complete the subscriber is still referred to"),
    _row("library7_releases_the_subscriber_after_failure", "L.7",
         "keeps references to its subscribers",
         "after on_error the subscriber is still referred to"),
    _row("library7_releases_the_elements", "L.7",
         "sends objects and keeps references to its elements",
         "are held by a subscription that has ended"),
    _row("library8_reports_a_subscriber_that_raises", "L.8", "swallows errors", "was not called"),
    _row("library8_reports_a_subscriber_that_raises", "L.8", "reports errors twice",
         "reported 2 times"),
    _row("library8_reports_a_subscriber_that_raises_in_on_error", "L.8", "swallows errors",
         "was not called"),
    _row("library9_stays_alive_while_elements_are_requested", "L.9",
         "is kept alive only by its caller", "3 were requested and 1 came"),
]  # fmt: skip


def _naive() -> Candidate:
    return Candidate(name="a naive publisher", publisher=NaivePublisher, awaits_signals=False)


def _awaited() -> Candidate:
    make: Any = AwaitablePublisher
    return Candidate(name="a publisher that must be awaited", publisher=make)


def _recursive(law: str, rule: str, words: str) -> BrokenCandidate:
    return BrokenCandidate(law, "sends everything recursively inside request", _naive, rule, words)


_FURTHER = [
    _row("spec103_does_not_overlap_awaited_signals", "1.3",
         "terminates before its last signal has ended",
         "on_complete began before on_next had ended"),
    _row("spec103_does_not_overlap_its_failure", "1.3",
         "terminates before its last signal has ended", "on_error began before on_next had ended"),
    _row("spec104_signals_its_failure", "1.4", "fails with a string", "this is not an exception"),
    _row("spec107_is_silent_after_its_end", "1.7", "sends an element after its end",
         "on_next came after the terminal signal"),
    _row("spec107_is_silent_after_its_failure", "1.7", "sends an element after its end",
         "on_next came after the terminal signal"),
    _row("spec109_subscribes_first", "1.9", "does nothing", "on_subscribe has not come"),
    _row("spec109_subscribes_first", "1.9", "begins with its completion",
         "on_complete came before on_subscribe"),
    BrokenCandidate("spec109_subscribes_first", "has a subscribe that must be awaited", _awaited,
                    "1.9", "subscribe() returned an awaitable"),
    _row("spec317_takes_the_largest_demand", "3.17", "fails at the largest demand", "made it fail"),
    _row("setup_makes_a_stream_of_one", "2.13", "sends None", "None is not an element"),
    _recursive("spec108_stops_after_cancel", "1.8",
               "all 998 elements that were left came after cancel()"),
    _recursive("spec303_does_not_recurse", "3.3", "on_next was called inside on_next, 40 deep"),
    _recursive("spec312_cancel_stops_the_publisher", "3.12", "signals continue after cancel()"),
    _recursive("spec309_refuses_zero", "3.9", "request(0) was not answered"),
    _recursive("spec213_cancels_a_subscriber_that_raises", "1.9",
               "subscribe() raised _SubscriberError("),
]  # fmt: skip

BROKEN_PUBLISHERS: list[BrokenCandidate] = [
    *_SETUP, *_SIGNALS, *_SUBSCRIBING, *_DEMAND, *_CANCELLATION, *_LIBRARY, *_FURTHER
]  # fmt: skip
"""At least one row for every law for publishers."""
