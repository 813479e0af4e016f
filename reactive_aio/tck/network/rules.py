"""The rules of the wire: what RSocket 1.0 asks of a peer, and what a peer on a network should heed.

Those of strength MUST stand in the protocol's text, in other words. SHOULD is what the text leaves
open and a server among strangers needs all the same: bounds, and answers to what makes no sense.
"""

from typing import Final

from ..rules import Rule, Strength

__all__ = ("WIRE_RULES",)

_MUST, _SHOULD, _MAY = Strength

_CONNECTION = (
    Rule("N.1", _MUST, "The first frame is SETUP or RESUME, on stream 0; anything else is answered "
         "by INVALID_SETUP and the end, and is not served."),
    Rule("N.2", _MUST, "A SETUP that cannot be read, or of another version, is answered by an "
         "error of setup and the end."),
    Rule("N.3", _MUST, "Who is refused gets REJECTED_SETUP and the end, and is served nothing."),
    Rule("N.4", _MUST, "To resume is granted or refused: REJECTED_SETUP where it is not done, "
         "REJECTED_RESUME for a session that is not known."),
    Rule("N.5", _MUST, "Who asks for leases gets one, or is refused; a request without a lease "
         "gets REJECTED."),
    Rule("N.6", _MUST, "A KEEPALIVE that wants an answer gets one with the same data, which wants "
         "none."),
    Rule("N.7", _MUST, "Frames that make no sense where they come are passed over."),
    Rule("N.8", _MUST, "A frame of an unknown type is passed over if it says so; else it is passed "
         "over, or answered by CONNECTION_ERROR and the end."),
    Rule("N.9", _MUST, "A frame whose metadata does not fit is answered by CONNECTION_ERROR and "
         "the end."),
    Rule("N.10", _SHOULD, "So is what is no frame at all, and a request on stream 0."),
    Rule("N.11", _MUST, "Of an end that is announced the connection dies: at once after "
         "CONNECTION_ERROR, with its last stream after CONNECTION_CLOSE."),
    Rule("N.12", _MUST, "What is sent can be read: types, lengths and flags make sense."),
    Rule("N.13", _MUST, "Whatever one connection sends, others are served."),
)  # fmt: skip

_RESPONDER = (
    Rule("N.14", _MUST, "No more elements are sent than have been requested."),
    Rule("N.15", _MUST, "What has been requested is sent, as long as there is any; the end needs "
         "no request."),
    Rule("N.16", _MUST, "Requests add up, however large they are."),
    Rule("N.17", _SHOULD, "A request for 0 elements gets none, and one that opens a stream an "
         "error."),
    Rule("N.18", _MUST, "After CANCEL a stream stops, soon."),
    Rule("N.19", _MUST, "After its end nothing is sent on a stream, nor on one never opened."),
    Rule("N.20", _MUST, "REQUEST_RESPONSE is answered once: an element that completes, a "
         "completion or an error."),
    Rule("N.21", _MUST, "Data and metadata arrive as they were sent; to be empty is not to be "
         "absent."),
    Rule("N.22", _MUST, "REQUEST_FNF is never answered."),
    Rule("N.23", _MUST, "A channel: the responder asks for what follows the first element, and "
         "each direction ends for itself."),
    Rule("N.24", _MUST, "A channel that its requester cancels or fails has ended both ways."),
    Rule("N.25", _SHOULD, "Elements that nobody asked for are refused: by an error, or CANCEL."),
    Rule("N.26", _MUST, "A failure is an ERROR on its stream, with a code of streams; the "
         "connection goes on."),
    Rule("N.27", _MUST, "A request on a stream that is in use is passed over."),
    Rule("N.28", _SHOULD, "A request on a stream of the other side's is not served."),
    Rule("N.29", _SHOULD, "Streams do not wait for each other."),
)  # fmt: skip

_BOUNDS = (
    Rule("N.30", _MUST, "Fragments are put together, metadata first, those of several streams "
         "side by side."),
    Rule("N.31", _MUST, "What is longer than a frame comes whole, or not at all."),
    Rule("N.32", _SHOULD, "What is put together from fragments is bounded: in bytes, in number, "
         "and in fragments that bring nothing."),
    Rule("N.33", _SHOULD, "The streams that one connection may open are bounded."),
    Rule("N.34", _SHOULD, "Who says nothing is let go: no SETUP, half a frame, no sign of life."),
    Rule("N.35", _SHOULD, "A flood of frames that lead to nothing ends its connection."),
    Rule("N.36", _SHOULD, "A peer that asks for all and reads nothing costs little memory."),
    Rule("N.37", _MUST, "WebSocket: each binary message is one frame, without its length, in one "
         "piece or several; a text is none."),
)  # fmt: skip

_REQUESTER = (
    Rule("N.38", _MUST, "Streams have numbers of their own: even ones from 2 for a server, odd "
         "ones from 1 for a client, each by 2 more than the last."),
    Rule("N.39", _MUST, "A request is the first frame of its stream, is sent once, and carries "
         "what its subscriber requested first."),
    Rule("N.40", _MUST, "What a subscriber requests later goes out as REQUEST_N, one for one."),
    Rule("N.41", _MUST, "A request that is not positive is not sent, and harms nobody."),
    Rule("N.42", _MUST, "CANCEL is sent once; after it, and after the end, nothing."),
    Rule("N.43", _MUST, "Elements, their end, and an error with its code reach the subscriber."),
    Rule("N.44", _MUST, "More elements than requested do not reach the subscriber: the stream is "
         "cancelled."),
)  # fmt: skip

WIRE_RULES: Final[dict[str, Rule]] = {
    rule.number: rule for rule in (*_CONNECTION, *_RESPONDER, *_BOUNDS, *_REQUESTER)
}
"""Every rule of the wire, by its number."""
