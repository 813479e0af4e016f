"""The 43 rules of Reactive Streams 1.0.4: number, strength, and what they ask, in our own words.

The strength is that of the specification's own verb: MUST, SHOULD or MAY.
"""

from enum import Enum
from typing import Final, NamedTuple

__all__ = ("HOUSE_RULES", "RULES", "UNJUDGED", "Rule", "Strength", "in_order")


class Strength(Enum):
    """How much a rule insists."""

    MUST = "must"
    SHOULD = "should"
    MAY = "may"


class Rule(NamedTuple):
    """One rule of the specification."""

    number: str
    strength: Strength
    text: str


_MUST, _SHOULD, _MAY = Strength

_PUBLISHER = (
    Rule("1.1", _MUST, "Never send more elements than have been requested."),
    Rule("1.2", _MAY, "Fewer elements than requested may be sent, when the end comes first."),
    Rule(
        "1.3", _MUST, "Send signals one after another; each begins when the one before has ended."
    ),
    Rule("1.4", _MUST, "A failure is signalled by on_error."),
    Rule("1.5", _MUST, "The end of a finite stream is signalled by on_complete."),
    Rule("1.6", _MUST, "After a terminal signal the subscription counts as cancelled."),
    Rule("1.7", _MUST, "After a terminal signal there is no other signal."),
    Rule("1.8", _MUST, "After a cancellation the signals stop, soon."),
    Rule(
        "1.9",
        _MUST,
        "subscribe() sends on_subscribe first and raises for a missing subscriber only.",
    ),
    Rule("1.10", _MUST, "subscribe() may be called many times, each time with another subscriber."),
    Rule(
        "1.11",
        _MAY,
        "Several subscribers may be served; each gets all elements, or a share of them.",
    ),
)

_SUBSCRIBER = (
    Rule("2.1", _MUST, "Elements come only when they have been requested."),
    Rule("2.2", _SHOULD, "A subscriber that takes long moves its work elsewhere."),
    Rule("2.3", _MUST, "on_complete and on_error call neither the subscription nor the publisher."),
    Rule("2.4", _MUST, "After a terminal signal a subscriber takes its subscription as cancelled."),
    Rule("2.5", _MUST, "A second subscription is cancelled while the first is in use."),
    Rule("2.6", _MUST, "A subscription that is no longer needed is cancelled."),
    Rule("2.7", _MUST, "Calls of request and cancel do not overlap."),
    Rule("2.8", _MUST, "Elements already under way may arrive after a cancellation."),
    Rule("2.9", _MUST, "on_complete may come without any request before it."),
    Rule("2.10", _MUST, "on_error may come without any request before it."),
    Rule("2.11", _MUST, "A signal has been received in full before it is processed."),
    Rule("2.12", _MUST, "on_subscribe comes once for one subscriber."),
    Rule("2.13", _MUST, "Signals return normally, except for a missing argument; a subscriber that "
         "raises counts as cancelled, and somebody is told."),
)  # fmt: skip

_SUBSCRIPTION = (
    Rule("3.1", _MUST, "request and cancel are the subscriber's to call."),
    Rule("3.2", _MUST, "request may be called inside on_subscribe and on_next."),
    Rule("3.3", _MUST, "request and on_next do not call each other without a limit."),
    Rule("3.4", _SHOULD, "request returns quickly."),
    Rule("3.5", _MUST, "cancel returns quickly, can be repeated, and is safe from any thread."),
    Rule("3.6", _MUST, "After a cancellation request has no effect."),
    Rule("3.7", _MUST, "After a cancellation cancel has no effect."),
    Rule("3.8", _MUST, "Requests add up."),
    Rule("3.9", _MUST, "A request that is not positive is answered by on_error, saying so."),
    Rule("3.10", _MAY, "request may send elements before it returns."),
    Rule("3.11", _MAY, "request may send a terminal signal before it returns."),
    Rule("3.12", _MUST, "cancel makes the publisher stop, soon."),
    Rule("3.13", _MUST, "cancel makes the publisher forget the subscriber, soon."),
    Rule("3.14", _MAY, "cancel may shut down a publisher that has no other subscriber."),
    Rule("3.15", _MUST, "cancel returns normally."),
    Rule("3.16", _MUST, "request returns normally."),
    Rule("3.17", _MUST, "Demand can be as large as 2**63-1, in any number of requests."),
)

_PROCESSOR = (
    Rule("4.1", _MUST, "A processor keeps the rules of a subscriber and of a publisher."),
    Rule("4.2", _MAY, "A processor may recover from on_error; otherwise it passes the error on."),
)

RULES: Final[dict[str, Rule]] = {
    rule.number: rule for rule in (*_PUBLISHER, *_SUBSCRIBER, *_SUBSCRIPTION, *_PROCESSOR)
}
"""Every rule, by its number."""

_HOUSE = (
    Rule("L.1", _SHOULD, "The same elements come, in the same order, however they are requested."),
    Rule("L.2", _SHOULD, "Cancelled on the loop, a publisher is silent at once."),
    Rule("L.3", _SHOULD, "What a publisher holds is given back once, however the stream ends."),
    Rule("L.4", _SHOULD, "Signals see the context variables as they were at subscribe."),
    Rule("L.5", _SHOULD, "No task outlives its subscription."),
    Rule("L.6", _SHOULD, "No thread outlives its subscription, except those of a pool."),
    Rule("L.7", _SHOULD, "After the end nothing holds the subscriber or its elements."),
    Rule("L.8", _SHOULD, "What a subscriber raises is told to the loop's exception handler, once."),
    Rule("L.9", _SHOULD, "What was requested comes, though nobody else holds the subscription."),
)

HOUSE_RULES: Final[dict[str, Rule]] = {rule.number: rule for rule in _HOUSE}
"""What this library asks of itself beyond the specification, by number."""

UNJUDGED: Final[dict[str, str]] = {}
"""The rules that no law can judge on one event loop, and why: each is judged by some law."""


def in_order(rule: str) -> tuple[int, int]:
    """To sort by: the factories first, then the rules by their numbers, then the house's own."""
    part, _, number = rule.partition(".")
    if not number.isdigit():
        return (0, 0)
    return (int(part) if part.isdigit() else 9, int(number))
