"""A client that requests an answer to its SETUP."""

from reactive_aio.rsocket.protocol.connection import Connection
from reactive_aio.rsocket.protocol.events import Closed
from reactive_aio.rsocket.protocol.frames import ErrorCode, KeepAlive, Setup

from .wire import carry, sent


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
