"""The rules of the wire: what RSocket 1.0 requires of a peer, and what a robust peer also does.

Strength MUST is the protocol's text, in other words. SHOULD is what the text leaves open and a
server that accepts any client still needs: bounds, and answers to malformed input.
"""

from typing import Final

from ..rules import Rule, Strength

__all__ = ("WIRE_RULES",)

_MUST, _SHOULD, _MAY = Strength

_RULES = (
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
    Rule("N.15", _MUST, "Requested elements are sent until the stream ends; its end needs no "
         "request."),
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
    Rule("N.40", _MUST, "Later demand of a subscriber is sent as REQUEST_N, one for one."),
    Rule("N.41", _MUST, "A request that is not positive is not sent, and affects no other stream."),
    Rule("N.42", _MUST, "CANCEL is sent once; after it, and after the end, nothing is sent."),
    Rule("N.43", _MUST, "Elements, their end, and an error with its code reach the subscriber."),
    Rule("N.44", _MUST, "Elements beyond the demand do not reach the subscriber: the stream is "
         "cancelled."),
)  # fmt: skip
WIRE_RULES: Final[dict[str, Rule]] = {rule.number: rule for rule in _RULES}
"""Every rule of the wire, by its number."""
