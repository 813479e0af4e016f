"""The kit judged: for each law for publishers one that breaks it, and what the verdict says.

A table: the documentation is generated from it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from reactive_aio.tck import Outcome, Candidate
from tests.tck.flawed_publisher import Awaited, Naive, Suspect

__all__ = ("TRIALS", "BrokenTrial", "suspect")


@dataclass(frozen=True)
class BrokenTrial:
    """One law, a candidate that breaks it, and the words of the verdict."""

    law: str
    suspect: str
    """What the candidate does wrong: "a publisher that …"."""
    make: Callable[[], Candidate]
    rule: str
    """The one that the verdict names."""
    words: str
    outcome: Outcome = Outcome.FAIL

    def __str__(self) -> str:
        return f"{self.law}: {self.suspect}"


def suspect(*flaws: str, **options: Any) -> Candidate:
    """A candidate of which every part has the same flaws."""

    def closing(n: int, closed: Callable[[], None]) -> Suspect:
        return Suspect(n, *flaws, closed=closed)

    return Candidate(
        name=f"a publisher that {' and '.join(flaws) or 'keeps all rules'}",
        publisher=lambda n: Suspect(n, *flaws),
        failing_publisher=lambda: Suspect(2, *flaws, fails=True),
        infinite_publisher=lambda: Suspect(float("inf"), *flaws),
        closing_publisher=closing,
        **options,
    )


def short_of_breath() -> Candidate:
    def publisher(n: int) -> Suspect:
        if n == 3:
            raise MemoryError("three are too many")
        return Suspect(n)

    return Candidate(name="a factory that cannot make its max_elements", publisher=publisher,
                   max_elements=3)  # fmt: skip


def _row(
    law: str, rule: str, flaw: str, words: str, outcome: Outcome = Outcome.FAIL
) -> BrokenTrial:
    return BrokenTrial(law, flaw, partial(suspect, *flaw.split(" and ")), rule, words, outcome)


def _optional(law: str, rule: str, flaw: str, words: str) -> BrokenTrial:
    """What a publisher may do, and this one does not."""
    return _row(law, rule, flaw, words, Outcome.NOT_JUDGED)


_SETUP = [
    BrokenTrial(
        "setup_can_make_max_elements",
        "cannot make its max_elements",
        short_of_breath,
        "setup",
        "the factory publisher(3) raised MemoryError",
    ),
    BrokenTrial(
        "setup_max_depth_fits_the_stack",
        "declares a depth of a million",
        partial(suspect, max_depth=10**6),
        "setup",
        "max_depth is 1000000, and Python's stack has room for",
    ),
    _row("setup_makes_a_stream_of_one", "setup", "loses the first element", "came before the end"),
    _row("setup_makes_a_stream_of_one", "setup", "never ends", "publisher(1) sent 1 elements and"),
    _row("setup_makes_a_stream_of_three", "setup", "fails instead of completing", "(3) failed"),
]

_SIGNALS = [
    _row("spec102_completes_with_less_than_requested", "1.2", "fails instead of completing",
         "it failed instead of completing"),
    _row("spec102_completes_with_less_than_requested", "1.2", "never ends", "no terminal signal"),
    _row("spec103_does_not_overlap_awaited_signals", "1.3", "overlaps awaited signals",
         "began before on_next had ended"),
    _row("spec103_does_not_overlap_its_failure", "1.3", "overlaps awaited signals",
         "began before on_next had ended"),
    _row("spec103_signals_one_at_a_time", "1.3", "sends from several threads",
         "came on another thread while a signal was under way"),
    _row("spec104_signals_its_failure", "1.4", "hides its failure", "completed instead of failing"),
    _row("spec104_signals_its_failure", "1.4", "never ends", "no terminal signal"),
    _row("spec105_completes_a_finite_stream", "1.5", "never ends", "no terminal signal came"),
    _row("spec105_completes_a_finite_stream", "1.1", "loses the first element", "came before"),
    _row("spec105_completes_an_empty_stream", "1.5", "never ends", "no terminal signal came"),
    _row("spec106_counts_as_cancelled_after_its_end", "1.7", "answers after its end",
         "on_error came after the terminal signal"),
    _row("spec106_counts_as_cancelled_after_its_failure", "1.7", "answers after its end",
         "on_error came after the terminal signal"),
    _row("spec107_is_silent_after_its_end", "1.7", "ends twice", "on_complete came after the term"),
    _row("spec107_is_silent_after_its_failure", "1.7", "ends twice", "on_error came after the ter"),
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
    _row("spec109_rejects_none_as_subscriber", "1.9", "takes nobody", "did not raise TypeError"),
    _row("spec109_rejects_none_as_subscriber", "1.9", "raises in subscribe", "no TypeError"),
    _row("spec109_subscribes_first", "1.9", "begins with an element", "came before on_subscribe"),
    _row("spec110_serves_or_refuses_the_next_subscriber", "1.9",
         "ignores all but the first subscriber", "on_subscribe has not come"),
    _row("spec110_serves_or_refuses_the_next_subscriber", "1.10", "starves its second subscriber",
         "the second subscriber has got neither elements nor an end"),
    _row("spec110_takes_the_same_subscriber_twice", "1.1", "sends once per subscription",
         "2 were requested in all, 3 came"),
    _optional("spec111_takes_two_subscribers", "1.11", "refuses its second subscriber",
              "one was refused: RuntimeError('one is enough')"),
    _optional("spec111_serves_two_subscribers", "1.11", "starves its second subscriber",
              "one got neither an element nor completion"),
    _optional("spec111_sends_all_to_each_one_by_one", "1.11", "starves its second subscriber",
              "one of three did not get 5 elements"),
    _optional("spec111_sends_all_to_each_one_by_one", "1.11", "never ends", "no completion"),
    _optional("spec111_sends_all_to_each_requested_at_once", "1.11", "sends what it likes",
              "not all got the same elements in the same order"),
    _optional("spec111_sends_all_to_each_and_completes", "1.11", "never ends", "no completion"),
    _row("spec212_subscribes_once", "2.12", "subscribes twice", "on_subscribe came again"),
]  # fmt: skip

_DEMAND = [
    _row("spec101_sends_no_more_than_requested", "1.1", "ignores demand",
         "0 were requested in all, 1 came"),
    _row("spec101_sends_no_more_than_requested", "1.1", "sends one too many",
         "1 were requested in all, 2 came"),
    _row("spec101_infinite_sends_no_more_than_requested", "1.1", "ignores demand",
         "3 were requested in all, 4 came"),
    _row("spec207_takes_calls_from_changing_threads", "2.7",
         "takes requests on its own thread only", "did not all come"),
    _row("spec207_takes_calls_from_changing_threads", "2.7",
         "wakes its loop as if there were no threads", "another thread called loop.call_soon"),
    _row("spec301_takes_requests_outside_of_signals", "3.1", "takes requests inside signals only",
         "did not all come"),
    _row("spec302_takes_requests_inside_signals", "3.2", "takes no request inside signals",
         "did not all come"),
    _row("spec302_infinite_takes_requests_inside_signals", "3.2",
         "takes no request inside signals", "did not all come"),
    _row("spec303_does_not_recurse", "3.3", "sends inside on_next",
         "on_next was called inside on_next"),
    _row("spec303_does_not_recurse", "3.3", "grows its stack",
         "the stack grows with every request inside on_next"),
    _row("spec303_infinite_does_not_recurse", "3.3", "grows its stack", "the stack grows with"),
    _row("spec308_adds_requests_up", "3.8", "takes the last request only", "did not all come"),
    _row("spec309_refuses_zero", "3.9", "ignores a wrong request", "request(0) was not answered"),
    _row("spec309_refuses_zero", "3.9", "answers a wrong request with its own error",
         "by no ValueError"),
    _row("spec309_refuses_a_negative_number", "3.9", "ignores a wrong request",
         "request(-1) was not answered"),
    _row("spec309_refuses_a_negative_number", "3.9",
         "forgets a wrong request at the next right one", "as request(1) followed at once"),
    _row("spec309_names_the_problem", "3.9", "answers a wrong request vaguely",
         "the answer does not say what was wrong: 'no'"),
    _row("spec316_request_returns_normally", "3.16", "raises for a wrong request",
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
    _row("spec305_cancels_from_another_thread", "3.5", "cancels on its own thread only",
         "after cancel() from another thread"),
    _row("spec305_cancels_from_another_thread", "3.5",
         "wakes its loop as if there were no threads", "another thread called loop.call_soon"),
    _row("spec306_ignores_requests_after_cancel", "3.6", "is revived by a request",
         "signals came after cancel() and request()"),
    _row("spec307_ignores_repeated_cancel", "3.15", "raises in a second cancel",
         "cancel() raised RuntimeError('cancelled already')"),
    _row("spec307_ignores_repeated_cancel", "3.7", "answers a second cancel",
         "signals came after cancel()"),
    _row("spec312_cancel_stops_the_publisher", "3.12", "ignores cancel", "after cancel()"),
    _row("spec313_releases_the_subscriber", "3.13", "remembers its subscribers",
         "the subscriber is still referred to, by objects of ['list']"),
    _optional("spec314_cancel_shuts_the_publisher_down", "3.14", "never cleans up",
              "nothing was given back after cancel()"),
    _row("spec315_cancel_returns_normally", "3.15", "raises in a second cancel",
         "cancel() raised RuntimeError('cancelled already')"),
    _row("spec213_cancels_a_subscriber_that_raises", "2.13", "goes on when its subscriber raises",
         "signals came after the subscriber had raised in on_"),
    _row("spec213_survives_a_subscriber_that_raises_in_on_error", "1.7", "ends twice",
         "on_error came after the terminal signal"),
]  # fmt: skip

_HOUSE = [
    _row("library1_sends_the_same_elements_for_any_demand", "L.1", "sends what it likes",
         "other elements came than"),
    _row("library1_sends_the_same_elements_for_any_demand", "L.1", "loses the last that was demanded",
         "did not all come"),
    _row("library2_stops_immediately_after_cancel", "L.2", "cancels later", "came after cancel()"),
    _row("library3_cleans_up_once", "L.3", "never cleans up", "nothing was given back after"),
    _row("library3_cleans_up_once", "L.3", "cleans up twice", "it was given back 2 times after"),
    _row("library4_keeps_context_variables", "L.4", "forgets the context",
         "the variable was 'nothing', at subscribe 'as subscribed'"),
    _row("library5_leaves_no_task", "L.5", "leaves a task", "tasks stay: <coroutine object Sending"),
    _row("library6_leaves_no_thread", "L.6", "leaves a thread", "threads stay: Thread-"),
    _row("library7_releases_the_subscriber_after_completion", "L.7", "remembers its subscribers",
         "after on_complete the subscriber is still referred to"),
    _row("library7_releases_the_subscriber_after_failure", "L.7", "remembers its subscribers",
         "after on_error the subscriber is still referred to"),
    _row("library7_releases_the_elements", "L.7", "sends objects and keeps its elements",
         "are held by a subscription that is over"),
    _row("library8_reports_a_subscriber_that_raises", "L.8", "swallows errors", "was not told"),
    _row("library8_reports_a_subscriber_that_raises", "L.8", "tells everything twice",
         "told 2 times"),
    _row("library8_reports_a_subscriber_that_raises_in_on_error", "L.8", "swallows errors",
         "was not told"),
    _row("library9_stays_alive_while_elements_are_requested", "L.9", "is held by its caller alone",
         "3 were requested and 1 came"),
]  # fmt: skip


def _naive() -> Candidate:
    return Candidate(name="a naive publisher", publisher=Naive, awaits_signals=False)


def _awaited() -> Candidate:
    make: Any = Awaited
    return Candidate(name="a publisher that must be awaited", publisher=make)


def _naively(law: str, rule: str, words: str) -> BrokenTrial:
    return BrokenTrial(law, "sends everything inside request, naively", _naive, rule, words)


_FURTHER = [
    _row("spec103_does_not_overlap_awaited_signals", "1.3", "ends before its last signal has ended",
         "on_complete began before on_next had ended"),
    _row("spec103_does_not_overlap_its_failure", "1.3", "ends before its last signal has ended",
         "on_error began before on_next had ended"),
    _row("spec104_signals_its_failure", "1.4", "fails with a mere text", "this is no exception"),
    _row("spec107_is_silent_after_its_end", "1.7", "goes on after its end",
         "on_next came after the terminal signal"),
    _row("spec107_is_silent_after_its_failure", "1.7", "goes on after its end",
         "on_next came after the terminal signal"),
    _row("spec109_subscribes_first", "1.9", "does nothing", "on_subscribe has not come"),
    _row("spec109_subscribes_first", "1.9", "begins with its completion",
         "on_complete came before on_subscribe"),
    BrokenTrial("spec109_subscribes_first", "has a subscribe that must be awaited", _awaited,
                "1.9", "subscribe() returned something to await"),
    _row("spec317_takes_the_largest_demand", "3.17", "fails at the largest demand", "made it fail"),
    _row("setup_makes_a_stream_of_one", "2.13", "sends None", "None is no element"),
    _naively("spec108_stops_after_cancel", "1.8",
             "all 998 elements that were left came after cancel()"),
    _naively("spec303_does_not_recurse", "3.3", "on_next was called inside on_next, 40 deep"),
    _naively("spec312_cancel_stops_the_publisher", "3.12", "signals go on after cancel()"),
    _naively("spec309_refuses_zero", "3.9", "request(0) was not answered"),
    _naively("spec213_cancels_a_subscriber_that_raises", "1.9", "subscribe() raised _Wrong("),
]  # fmt: skip

TRIALS: list[BrokenTrial] = [
    *_SETUP, *_SIGNALS, *_SUBSCRIBING, *_DEMAND, *_CANCELLATION, *_HOUSE, *_FURTHER
]  # fmt: skip
"""Every law for publishers, with at least one candidate that breaks it."""
