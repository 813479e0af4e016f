"""The protocol between a Spark task and the process that runs the loop, and its client.

Both sides send frames, ``[uint32 length][bytes]``. The client's first frame is the token, and the
second a request, a JSON object; what follows depends on its operation. An answer is a JSON object
as well, and one with an ``error`` is the last. Rows travel as Arrow streams.
"""

import json
import socket
import ssl
from collections.abc import Mapping
from importlib import import_module
from struct import Struct
from typing import Any, Final, Self, cast

HEAD: Final = Struct("!I")
MAX_MESSAGE: Final = 1 << 20
"""Bytes of a message, which may contain a schema."""
MAX_TOKEN: Final = 1024
"""Bytes of a token: a client that does not know it cannot send more."""
_CONNECT_TIMEOUT: Final = 30.0  # seconds

Message = dict[str, Any]


class Refused(RuntimeError):
    """The other side sent an error instead of an answer."""


def frame(content: bytes) -> bytes:
    return HEAD.pack(len(content)) + content


def encode(message: Mapping[str, Any]) -> bytes:
    """Return a message as the content of a frame."""
    return json.dumps(message).encode()


def decode(content: bytes) -> Message:
    """Return the message in a frame. Raises `ValueError` for other content."""
    try:
        message = json.loads(content)
    except RecursionError as error:
        raise ValueError("the message is nested too deeply") from error
    if not isinstance(message, dict):
        raise ValueError("a JSON object is needed")
    return cast("Message", message)


def encode_table(table: Any) -> bytes:
    """Return an Arrow stream of a table, or of a record batch."""
    pyarrow: Any = import_module("pyarrow")
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, table.schema) as stream:
        stream.write(table)
    return cast("bytes", sink.getvalue().to_pybytes())


def read_batches(content: bytes) -> list[Any]:
    """Return the record batches of an Arrow stream."""
    pyarrow: Any = import_module("pyarrow")
    with pyarrow.ipc.open_stream(pyarrow.py_buffer(content)) as stream:
        return [*stream]


def _connect(address: str, options: Mapping[str, str]) -> socket.socket:
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    connection = socket.create_connection((host, int(port)), timeout=_CONNECT_TIMEOUT)
    if options.get("tls") != "true":
        return connection
    context = ssl.create_default_context(cadata=options.get("ca"))
    try:
        return context.wrap_socket(connection, server_hostname=host)
    except BaseException as error:
        connection.close()
        if isinstance(error, ssl.SSLCertVerificationError):
            raise Refused(
                f"the certificate of {address} is not accepted: {error.verify_message}. It must be "
                "issued for that host, by an authority in the file ca= of serve_flow() or "
                "serve_writes(), or by one that this machine trusts"
            ) from error
        raise


class Client:
    """A connection from a task, or from the driver's Python, to the loop."""

    def __init__(self, options: Mapping[str, str], operation: str, **request: Any) -> None:
        try:
            address, token = options["address"], options["token"]
        except KeyError as error:
            raise Refused(
                f"format('reactive') needs the option {error}: give .options(**served.options), "
                "with what serve_flow() or serve_writes() has returned"
            ) from None
        self._socket = _connect(address, options)
        self._socket.settimeout(None)  # from here on, demand decides how long a wait is
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._socket.makefile("rb")
        self.send(token.encode("utf-8", "replace"))
        self.send_message(operation=operation, **request)

    def send_message(self, **message: Any) -> None:
        self.send(encode(message))

    def send(self, content: bytes) -> None:
        self._socket.sendall(frame(content))

    def receive(self) -> Message | bytes:
        """Return a message, or an Arrow stream as bytes. Raises `Refused` for an error."""
        head = self._file.read(HEAD.size)
        content = self._file.read(HEAD.unpack(head)[0]) if len(head) == HEAD.size else b""
        if not content:
            raise Refused(
                "the process that serves the flow has closed the connection: it has left its "
                "'async with', it has ended, or it does not know this token"
            )
        if not content.startswith(b"{"):
            return content
        message = decode(content)
        if "error" in message:
            raise Refused(message["error"])
        return message

    def receive_message(self) -> Message:
        return cast("Message", self.receive())

    def ask(self, **message: Any) -> Message:
        """Send a message; return the answer."""
        self.send_message(**message)
        return self.receive_message()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._socket.close()


def ask(options: Mapping[str, str], operation: str, **request: Any) -> Message:
    """Make a request whose answer is one message; return it."""
    with Client(options, operation, **request) as client:
        return client.receive_message()
