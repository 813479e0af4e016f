"""The 43 rules of Reactive Streams 1.0.4: number, strength, and meaning in our own words.

The strength is that of the specification's own verb: MUST, SHOULD or MAY.
"""

from enum import Enum
from typing import Final, NamedTuple

__all__ = ("LIBRARY_RULES", "RULES", "Rule", "Strength", "rule_order")


class Strength(Enum):
    """How strictly a rule binds."""

    MUST = "must"
    SHOULD = "should"
    MAY = "may"


class Rule(NamedTuple):
    """One rule of the specification."""

    number: str
    strength: Strength
    text: str


_MUST, _SHOULD, _MAY = Strength

_RULES = (
    # -- publishers ----------------------------------------------------------------------------
    Rule("1.1", _MUST, "Never send more elements than have been requested."),
    Rule("1.2", _MAY, "A publisher may send fewer elements than requested and then terminate."),
    Rule("1.3", _MUST, "Signals are sequential: each begins after the previous one has ended."),
    Rule("1.4", _MUST, "A failure is signaled by on_error."),
    Rule("1.5", _MUST, "A finite stream signals its end by on_complete."),
    Rule("1.6", _MUST, "After a terminal signal the subscription counts as cancelled."),
    Rule("1.7", _MUST, "After a terminal signal there is no other signal."),
    Rule("1.8", _MUST, "After a cancellation the signals eventually stop."),
    Rule("1.9", _MUST, "subscribe() sends on_subscribe first and raises only for a missing "
         "subscriber."),
    Rule("1.10", _MUST, "subscribe() may be called many times, each time with another subscriber."),
    Rule("1.11", _MAY, "A publisher may serve several subscribers; each receives all elements, or "
         "a share of them."),
    # -- subscribers ---------------------------------------------------------------------------
    Rule("2.1", _MUST, "A subscriber requests the elements that it receives."),
    Rule("2.2", _SHOULD, "A subscriber whose processing takes long dispatches it elsewhere."),
    Rule("2.3", _MUST, "on_complete and on_error call neither the subscription nor the publisher."),
    Rule("2.4", _MUST, "After a terminal signal a subscriber treats its subscription as "
         "cancelled."),
    Rule("2.5", _MUST, "A second subscription is cancelled while the first is in use."),
    Rule("2.6", _MUST, "A subscription that is no longer needed is cancelled."),
    Rule("2.7", _MUST, "Calls of request and cancel do not overlap."),
    Rule("2.8", _MUST, "A subscriber accepts elements that arrive after it has cancelled."),
    Rule("2.9", _MUST, "A subscriber accepts on_complete with or without a preceding request."),
    Rule("2.10", _MUST, "A subscriber accepts on_error with or without a preceding request."),
    Rule("2.11", _MUST, "A signal has been received in full before it is processed."),
    Rule("2.12", _MUST, "on_subscribe is called at most once for one subscriber."),
    Rule("2.13", _MUST, "Signals return normally, except for a missing argument; a subscriber that "
         "raises counts as cancelled, and the error is reported."),
    # -- subscriptions -------------------------------------------------------------------------
    Rule("3.1", _MUST, "Only the subscriber calls request and cancel."),
    Rule("3.2", _MUST, "request may be called inside on_subscribe and on_next."),
    Rule("3.3", _MUST, "The recursion between request and on_next is bounded."),
    Rule("3.4", _SHOULD, "request returns quickly."),
    Rule("3.5", _MUST, "cancel returns quickly, can be repeated, and is safe from any thread."),
    Rule("3.6", _MUST, "After a cancellation request has no effect."),
    Rule("3.7", _MUST, "After a cancellation cancel has no effect."),
    Rule("3.8", _MUST, "Requests add up."),
    Rule("3.9", _MUST, "A request that is not positive is answered by on_error, which says so."),
    Rule("3.10", _MAY, "request may send elements before it returns."),
    Rule("3.11", _MAY, "request may send a terminal signal before it returns."),
    Rule("3.12", _MUST, "cancel makes the publisher eventually stop."),
    Rule("3.13", _MUST, "cancel makes the publisher eventually drop all references to the "
         "subscriber."),
    Rule("3.14", _MAY, "cancel may shut down a publisher that has no other subscriber."),
    Rule("3.15", _MUST, "cancel returns normally."),
    Rule("3.16", _MUST, "request returns normally."),
    Rule("3.17", _MUST, "Demand can be as large as 2**63-1, in any number of requests."),
    # -- processors ----------------------------------------------------------------------------
    Rule("4.1", _MUST, "A processor obeys the rules of a subscriber and of a publisher."),
    Rule("4.2", _MAY, "A processor may recover from on_error; otherwise it passes the error on."),
)  # fmt: skip
RULES: Final[dict[str, Rule]] = {rule.number: rule for rule in _RULES}
"""Every rule, by its number."""

_LIBRARY = (
    Rule("L.1", _SHOULD, "The same elements come, in the same order, for any pattern of requests."),
    Rule("L.2", _SHOULD, "After a cancellation on the loop no signal follows."),
    Rule("L.3", _SHOULD, "A publisher releases its resources once, however the stream ends."),
    Rule("L.4", _SHOULD, "Signals see the context variables as they were at subscribe."),
    Rule("L.5", _SHOULD, "No task outlives its subscription."),
    Rule("L.6", _SHOULD, "No thread outlives its subscription, except those of a pool."),
    Rule("L.7", _SHOULD, "After the end nothing refers to the subscriber or its elements."),
    Rule("L.8", _SHOULD, "The loop's exception handler receives each error that a subscriber "
         "raises, once."),
    Rule("L.9", _SHOULD, "Requested elements come even if the caller keeps no reference to the "
         "subscription."),
)  # fmt: skip
LIBRARY_RULES: Final[dict[str, Rule]] = {rule.number: rule for rule in _LIBRARY}
"""What this library promises beyond the specification, by number."""


def rule_order(rule: str) -> tuple[int, int]:
    """A sort key: the factories first, then the specification's rules, then the library's."""
    part, _, number = rule.partition(".")
    if not number.isdigit():
        return (0, 0)
    return (int(part) if part.isdigit() else 9, int(number))
