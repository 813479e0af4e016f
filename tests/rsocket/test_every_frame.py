"""Every frame in every state of a stream, on real connections: what the table says is what happens.

The table itself is compared with the protocol in test_states.
"""

from collections.abc import Callable
from typing import Any

import pytest

from reactive_aio.rsocket.protocol.connection import Connection
from reactive_aio.rsocket.protocol.events import (
    Cancelled,
    Closed,
    Completed,
    DemandReceived,
    Elements,
    Failed,
    RequestReceived,
)
from reactive_aio.rsocket.protocol.frames import (
    Cancel,
    Error,
    Ext,
    Frame,
    Payload,
    PayloadFrame,
    RequestChannel,
    RequestFnf,
    RequestN,
    RequestResponse,
    RequestStream,
)
from reactive_aio.rsocket.protocol.stream_states import TABLE, Action, Input, State

from .wire import client, sent, server, wire

X = Payload(b"x")
ID = 1


def asked(model: str) -> Connection:
    connection = client()
    if model == "response":
        connection.request_response(X)
    elif model == "stream":
        connection.request_stream(X, 5)
    else:
        connection.request_channel(X, 5)
    return connection


def told(*frames: Frame) -> Connection:
    connection = server()
    connection.receive(wire(*frames), 0.0)
    return connection


def call(*frames: Frame) -> Connection:
    connection = asked("channel")
    sent(connection)
    connection.receive(wire(RequestN(ID, 5), *frames), 0.0)
    return connection


def talk(*frames: Frame) -> Connection:
    connection = told(RequestChannel(ID, 5, X))
    connection.request(ID, 5)
    connection.flush(0.0)
    sent(connection)
    connection.receive(wire(*frames), 0.0)
    return connection


def then(connection: Connection, do: Callable[[Connection], object]) -> Connection:
    do(connection)
    return connection


END = PayloadFrame(ID, next=False, complete=True)
STATES: dict[State, Callable[[], Connection]] = {
    State.CLOSED: client,
    State.REQUESTER_RESPONSE: lambda: asked("response"),
    State.REQUESTER_STREAM: lambda: asked("stream"),
    State.REQUESTER_CHANNEL: call,
    State.REQUESTER_CHANNEL_IN: lambda: then(call(), lambda c: c.complete(ID)),
    State.REQUESTER_CHANNEL_OUT: lambda: call(END),
    State.RESPONDER_REASSEMBLY: lambda: told(RequestStream(ID, 5, X, follows=True)),
    State.RESPONDER_RESPONSE: lambda: told(RequestResponse(ID, X)),
    State.RESPONDER_STREAM: lambda: told(RequestStream(ID, 5, X)),
    State.RESPONDER_CHANNEL: talk,
    State.RESPONDER_CHANNEL_IN: lambda: then(talk(), lambda c: c.complete(ID)),
    State.RESPONDER_CHANNEL_OUT: lambda: talk(END),
    State.FLUSHING: lambda: then(told(RequestResponse(ID, X)), lambda c: c.complete(ID)),
}
FRAMES: dict[str, tuple[Frame, Input | None]] = {
    "REQUEST_RESPONSE": (RequestResponse(ID, X), Input.REQUEST),
    "REQUEST_FNF": (RequestFnf(ID, X), Input.REQUEST),
    "REQUEST_STREAM": (RequestStream(ID, 5, X), Input.REQUEST),
    "REQUEST_CHANNEL": (RequestChannel(ID, 5, X), Input.REQUEST),
    "REQUEST_N": (RequestN(ID, 3), Input.REQUEST_N),
    "CANCEL": (Cancel(ID), Input.CANCEL),
    "NEXT": (PayloadFrame(ID, X), Input.NEXT),
    "NEXT and COMPLETE": (PayloadFrame(ID, X, complete=True), Input.LAST),
    "COMPLETE": (END, Input.COMPLETE),
    "neither": (PayloadFrame(ID, X, next=False), None),
    "fragment": (PayloadFrame(ID, X, follows=True), None),
    "ERROR": (Error(ID, 0x201, b"e"), Input.ERROR),
    "EXT": (Ext(ID, 5, ignore=True), None),
}
EVENTS: dict[Action, list[type[Any]]] = {
    Action.IGNORE: [],
    Action.DELIVER: [Elements],
    Action.CREDIT: [],  # it comes with the next turn
    Action.STOP_SENDING: [Cancelled],
    Action.FAIL_RECEIVING: [Failed],
    Action.ABORT: [Failed, Cancelled],
    Action.OPEN: [RequestReceived],
    Action.DROP: [],
}


def state_of(connection: Connection) -> State:
    stream = connection.streams.by_id.get(ID)
    return State.CLOSED if stream is None else stream.state


@pytest.mark.parametrize("state", State, ids=lambda state: state.name)
def test_each_example_reaches_its_state(state: State) -> None:
    assert state_of(STATES[state]()) is state


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("state", State, ids=lambda state: state.name)
def test_every_frame_in_every_state(state: State, name: str) -> None:
    connection = STATES[state]()
    frame, input_ = FRAMES[name]
    if state is State.CLOSED and input_ is Input.REQUEST:
        return  # a request: that is how streams begin
    connection.flush(0.0)
    if state is not State.FLUSHING:
        sent(connection)
    if state is State.RESPONDER_REASSEMBLY and name == "neither":
        input_ = Input.NEXT  # the last fragment
    events = [
        each for each in connection.receive(wire(frame), 0.0) if type(each) is not DemandReceived
    ]
    if input_ is None:
        assert events == []
        assert state_of(connection) is state
        return
    after, action = TABLE[state, input_]
    if action is Action.FINISH:
        expected: list[type[Any]] = [Completed if input_ is Input.COMPLETE else Elements]
    else:
        expected = EVENTS[action]
    if input_ is Input.CANCEL:  # a handler is cancelled before its incoming elements fail
        expected = expected[::-1]
    assert [type(event) for event in events] == expected
    if action is Action.OPEN:
        after = State.RESPONDER_STREAM
    if after is State.FLUSHING and not connection.queued_bytes:
        after = State.CLOSED
    assert state_of(connection) is after


@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("state", State, ids=lambda state: state.name)
def test_the_end_of_the_transport_in_every_state(state: State, name: str) -> None:
    connection = STATES[state]()
    connection.flush(0.0)
    connection.receive(wire(FRAMES[name][0]), 0.0)
    events = connection.transport_lost(0.0)
    assert type(events[-1]) is Closed
    assert not connection.streams.by_id
    assert connection.reassemblies.count == connection.reassemblies.size == 0
    assert connection.queued_bytes == 0
