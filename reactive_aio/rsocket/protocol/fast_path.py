"""The fast lane: frames that ask for no thought, taken in straight from the bytes.

These are elements without metadata, the answers to requests for one element, and such requests.
All others, and whatever is not as it should be, are left to `Intake`, which knows what to answer.
"""

from struct import Struct
from typing import Final

from .books import TOP_UP_LEVEL
from .events import ResponseRequests, Responses
from .frames import MAX_31
from .stream_machine import StreamMachine
from .stream_opening import StreamOpener
from .stream_states import InteractionModel
from .streams import ExpectedResponse, OwedResponse, Stream

__all__ = ("FastPath",)

# To look up a member of an enum takes five times as long as to look up a global.
_RESPONSE: Final = InteractionModel.RESPONSE

_FIRST: Final = Struct(">BHIH").unpack_from
_BEFORE: Final = 9
"""The length of a frame, and its header."""
_COMPLETE: Final = 0x40
_ELEMENT: Final = 0x0A << 10 | 0x20
_LAST: Final = _ELEMENT | _COMPLETE
_REQUEST: Final = 0x04 << 10
_WITH_METADATA: Final = _REQUEST | 0x100


class FastPath:
    """Reads for one connection, while it is open and keeps no positions."""

    def __init__(self, exchanges: StreamMachine, requests: StreamOpener) -> None:
        self._exchanges = exchanges
        self._requests = requests
        self._live = exchanges.streams.live

    def read(self, data: bytes, at: int) -> int:
        """Take in what can be from *at* on; where something else begins."""
        end = len(data)
        while at + _BEFORE <= end:
            high, low, stream_id, bits = _FIRST(data, at)
            if not at + _BEFORE <= at + 3 + (high << 16 | low) <= end:
                break
            begun = at
            if bits in (_REQUEST, _WITH_METADATA):
                at = self._read_requests(data, at)
            elif (bits | _COMPLETE) == _LAST:
                stream = self._live.get(stream_id)
                if stream is None or not stream.wire or stream.partial is not None:
                    break
                if type(stream) is ExpectedResponse:
                    at = self._read_answers(data, at)
                elif bits == _ELEMENT and stream.model is not _RESPONSE:
                    at = self._read_elements(data, at, stream)
            if at == begun:
                break
        return at

    def _read_elements(self, data: bytes, at: int, stream: Stream) -> int:
        """Take in elements of *stream*, one at least."""
        end, stream_id, exchanges = len(data), stream.id, self._exchanges
        append = exchanges.run(stream_id).data.append
        credit = left = stream.wire
        while left and at + _BEFORE <= end:
            high, low, other, bits = _FIRST(data, at)
            stop = at + 3 + (high << 16 | low)
            if bits != _ELEMENT or other != stream_id or not at + _BEFORE <= stop <= end:
                break
            append(data[at + _BEFORE : stop])
            at = stop
            left -= 1
        stream.wire = left
        exchanges.flood.useful(credit - left)
        if stream.wanted and left < TOP_UP_LEVEL:
            exchanges.ask(stream)
        return at

    def _read_answers(self, data: bytes, at: int) -> int:
        """Take in responses; on their streams nothing comes after them."""
        end, live, out = len(data), self._live, self._exchanges.out
        answers: list[tuple[int, bytes]] = []
        while at + _BEFORE <= end:
            high, low, stream_id, bits = _FIRST(data, at)
            stop = at + 3 + (high << 16 | low)
            if (bits | _COMPLETE) != _LAST or not at + _BEFORE <= stop <= end:
                break
            stream = live.get(stream_id)
            if type(stream) is not ExpectedResponse or stream.partial is not None:
                break
            if out.asks:  # it may be an answer before the question
                out.clear(stream)
            del live[stream_id]
            answers.append((stream_id, data[at + _BEFORE : stop]))
            at = stop
        self._exchanges.events.append(Responses(answers))
        self._exchanges.flood.useful(len(answers))
        return at

    def _read_requests(self, data: bytes, at: int) -> int:
        """Take in requests for one element."""
        end, live, exchanges = len(data), self._live, self._exchanges
        streams = exchanges.streams
        questions: list[tuple[int, bytes, bytes | None]] = []
        room = self._requests.room()
        while room and at + _BEFORE <= end:
            high, low, stream_id, bits = _FIRST(data, at)
            begin, stop = at + _BEFORE, at + 3 + (high << 16 | low)
            metadata = None
            if bits == _WITH_METADATA:
                size = int.from_bytes(data[begin : begin + 3], "big")
                metadata = data[begin + 3 : begin + 3 + size]
                begin += 3 + size
            elif bits != _REQUEST:
                break
            strange = stream_id in live or streams.mine(stream_id) or not 0 < stream_id <= MAX_31
            if strange or not begin <= stop <= end:
                break
            live[stream_id] = OwedResponse(stream_id)
            questions.append((stream_id, data[begin:stop], metadata))
            at = stop
            room -= 1
        if questions:
            streams.theirs += len(questions)
            exchanges.events.append(ResponseRequests(questions))
        return at
