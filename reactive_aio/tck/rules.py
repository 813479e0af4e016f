"""The rules of Reactive Streams 1.0.4, of this library, and of RSocket 1.0, in our own words.

The strength is that of the specification's own verb: MUST, SHOULD or MAY.
"""

from enum import Enum
from typing import Final, NamedTuple


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


NO_LAW: Final = "no law judges it"
"""Why a rule may stand in a report without a verdict."""

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
    Rule("4.2", _MUST, "A processor passes on_error on immediately, or it recovers and treats its "
         "subscription as cancelled."),
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

# -- the wire --------------------------------------------------------------------------------------
# What RSocket 1.0 requires of a peer is a MUST; a SHOULD is what its text leaves open and a server
# that accepts any client still needs: bounds, and answers to malformed input.
_WIRE = (
    # -- the connection ------------------------------------------------------------------------
    Rule("N.1", _MUST, "The first frame is SETUP or RESUME, on stream 0; any other is answered by "
         "INVALID_SETUP, the connection is closed, and nothing is served."),
    Rule("N.2", _MUST, "A malformed SETUP, or one of another version, is answered by an error of "
         "setup, and the connection is closed."),
    Rule("N.3", _MUST, "A rejected client receives REJECTED_SETUP, the connection is closed, and "
         "nothing is served."),
    Rule("N.4", _MUST, "A resumption is granted or refused: by REJECTED_SETUP if it is not "
         "supported, by REJECTED_RESUME if the session is unknown."),
    Rule("N.5", _MUST, "A client that requests leases receives one, or is refused; a request "
         "without a lease receives REJECTED."),
    Rule("N.6", _MUST, "A KEEPALIVE with RESPOND is answered by one with the same data and without "
         "RESPOND."),
    Rule("N.7", _MUST, "Frames that are out of context are ignored."),
    Rule("N.8", _MUST, "A frame of an unknown type is ignored if it has the flag IGNORE; else it "
         "is ignored, or answered by CONNECTION_ERROR and a closed connection."),
    Rule("N.9", _MUST, "A frame whose metadata is longer than the frame is answered by "
         "CONNECTION_ERROR and a closed connection."),
    Rule("N.10", _SHOULD, "So are a frame that is too short, and a request on stream 0."),
    Rule("N.11", _MUST, "The connection is closed immediately after CONNECTION_ERROR, and with its "
         "last stream after CONNECTION_CLOSE."),
    Rule("N.12", _MUST, "Sent frames are well-formed: types, lengths and flags are valid."),
    Rule("N.13", _MUST, "Whatever one connection sends, other connections are served."),
    # -- responders ----------------------------------------------------------------------------
    Rule("N.14", _MUST, "No more elements are sent than have been requested."),
    Rule("N.15", _MUST, "Requested elements are sent until the stream ends; its end is sent "
         "as soon as the handler signals it, and needs no request."),
    Rule("N.16", _MUST, "Requests add up, however large they are."),
    Rule("N.17", _SHOULD, "A request for 0 elements sends none; one that opens a stream is "
         "answered by an error."),
    Rule("N.18", _MUST, "After CANCEL a stream eventually stops."),
    Rule("N.19", _MUST, "After its end nothing is sent on a stream, nor on one never opened."),
    Rule("N.20", _MUST, "REQUEST_RESPONSE is answered once: by an element that completes, a "
         "completion or an error."),
    Rule("N.21", _MUST, "Data and metadata arrive as they were sent; empty differs from absent."),
    Rule("N.22", _MUST, "REQUEST_FNF is never answered."),
    Rule("N.23", _MUST, "On a channel the responder requests the elements after the first one, and "
         "each direction ends independently."),
    Rule("N.24", _MUST, "A channel that its requester cancels or fails ends in both directions."),
    Rule("N.25", _SHOULD, "Elements without demand are refused: by an error or CANCEL."),
    Rule("N.26", _MUST, "A failure is an ERROR on its stream, with a code of streams; the "
         "connection continues."),
    Rule("N.27", _MUST, "A request on a stream that is in use is ignored."),
    Rule("N.28", _SHOULD, "A request on a stream id of the responder's own is not served."),
    Rule("N.29", _SHOULD, "Streams do not wait for each other."),
    # -- bounds --------------------------------------------------------------------------------
    Rule("N.30", _MUST, "Fragments are reassembled, metadata first, separately for each stream."),
    Rule("N.31", _MUST, "A payload that is longer than a frame arrives whole, or not at all."),
    Rule("N.32", _SHOULD, "Reassembly is bounded: in bytes, in streams, and in empty fragments."),
    Rule("N.33", _SHOULD, "The open streams of one connection are bounded."),
    Rule("N.34", _SHOULD, "A silent client is disconnected: no SETUP, half a frame, no KEEPALIVE."),
    Rule("N.35", _SHOULD, "A flood of useless frames ends its connection."),
    Rule("N.36", _SHOULD, "A peer that requests everything and reads nothing costs little memory."),
    Rule("N.37", _MUST, "WebSocket: each binary message, fragmented or not, is one frame without "
         "its length; a text message is not a frame."),
    # -- requesters ----------------------------------------------------------------------------
    Rule("N.38", _MUST, "A server uses even stream ids from 2, a client odd ones from 1, each 2 "
         "more than the last."),
    Rule("N.39", _MUST, "A request is the first frame of its stream, is sent once, and carries the "
         "initial demand of its subscriber."),
    Rule("N.40", _MUST, "Later demand of a subscriber is sent as REQUEST_N, one for one, or in "
         "parts."),
    Rule("N.41", _MUST, "A request that is not positive is not sent, and affects no other stream."),
    Rule("N.42", _MUST, "CANCEL is sent once; after it, and after the end, nothing is sent."),
    Rule("N.43", _MUST, "Elements, their end, and an error with its code reach the subscriber."),
    Rule("N.44", _MUST, "Elements beyond the demand do not reach the subscriber: the stream is "
         "cancelled."),
)  # fmt: skip
WIRE_RULES: Final[dict[str, Rule]] = {rule.number: rule for rule in _WIRE}
"""Every rule of the wire, by its number."""


def find_rule(number: str) -> Rule | None:
    """The rule of that number; None for ``setup``, which is not a rule."""
    return RULES.get(number) or LIBRARY_RULES.get(number) or WIRE_RULES.get(number)


def rule_order(rule: str) -> tuple[int, int]:
    """A sort key: the factories first, then the specification's rules, then the library's."""
    part, _, number = rule.partition(".")
    if not number.isdigit():
        return (0, 0)
    return (int(part) if part.isdigit() else 9, int(number))
