"""A client that requests an answer to its SETUP."""

import pytest

from reactive_aio.rsocket.protocol.connection import Connection
from reactive_aio.rsocket.protocol.events import Closed
from reactive_aio.rsocket.protocol.frames import Error, ErrorCode, KeepAlive, Setup

from .wire import carry, sent, wire


def connecting() -> tuple[Connection, Connection]:
    """A client that has sent its SETUP and its question, and a server that has to decide."""
    client, server = Connection(Setup(), 0.0), Connection(None, 0.0)
    client.confirm()
    carry(client, server)
    assert server.is_awaiting_accept
    return client, server


def test_the_server_answers_once_it_has_accepted() -> None:
    client, server = connecting()
    assert sent(server) == []
    server.accept(0.0)
    carry(server, client)
    assert client.is_confirmed


def test_a_refusal_is_the_other_answer() -> None:
    client, server = connecting()
    server.reject("no")
    [closed] = carry(server, client)
    assert closed == Closed(ErrorCode.REJECTED_SETUP, b"no", local=False)
    assert not client.is_confirmed


@pytest.mark.parametrize("code", [ErrorCode.INVALID_SETUP, ErrorCode.REJECTED_SETUP])
def test_a_server_may_refuse_after_it_has_answered(code: ErrorCode) -> None:
    """It may answer keepalives while it still authenticates the client."""
    client, _ = connecting()
    client.receive(wire(KeepAlive(respond=False)), 0.0)
    assert client.is_confirmed
    [closed] = client.receive(wire(Error(0, code, b"the token is revoked")), 0.0)
    assert closed == Closed(code, b"the token is revoked", local=False)


def test_the_question_is_sent_after_setup() -> None:
    client = Connection(Setup(), 0.0)
    client.confirm()
    assert sent(client) == [Setup(), KeepAlive(respond=True)]


def test_any_frame_of_the_server_is_an_answer() -> None:
    client, server = Connection(Setup(), 0.0), Connection(None, 0.0)
    carry(client, server)
    server.accept(0.0)
    server.metadata_push(b"x")
    carry(server, client)
    assert client.is_confirmed


def test_a_connection_that_is_confirmed_asks_nothing() -> None:
    client, server = connecting()
    server.accept(0.0)
    carry(server, client)
    client.confirm()
    assert sent(client) == []
