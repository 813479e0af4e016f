"""The command: its output, its error messages and its exit status."""

import asyncio
import os
import queue
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from reactive_aio.rsocket import ConnectionLost, Router, serve
from reactive_aio.rsocket.command import PROGRAM, execute, main, parse_arguments
from tests.harness.leftover_checks import Context

ROOT = Path(__file__).parents[2]

# The server, in a process of its own; it writes its address and its events.
SERVER = """
import asyncio, json, sys
from reactive_aio import from_iterable, just, never
from reactive_aio.rsocket import *

routes = Router()

def say(*what):
    print(*what, flush=True)

@routes.route("range.{n}")
def count(n: int):
    return from_iterable(range(n)).map(str).do_on_request(lambda n: say("requested", n))

@routes.route("wait")
def wait():
    return just("first").concat_with(never()).do_on_cancel(lambda: say("cancelled"))

@routes.route("upper")
def upper(incoming):
    return incoming.map(str.upper)

@routes.route("log")
def log(payload, request: Request):
    say("log", payload, request.item("application/x.id"))

@routes.route("echo")
def echo(payload):
    return payload

@routes.route("raw")
def raw(request: Request):
    return Payload(request.data + b"\\xff")

@routes.route("me")
def me(user):
    return user

@routes.route("nothing")
def nothing():
    return None

@routes.route("full")
def full():
    raise ApplicationError(0x400, "no seats\\nleft")

@routes.on_metadata_push
def pushed(metadata):
    say("push", metadata[0].content.decode())

def authenticate(credentials):
    match credentials:
        case SimpleAuth("ann", "secret") | BearerToken("secret"):
            return "ann"
    return "anonymous"

async def main():
    async with await serve("tcp://127.0.0.1:0", routes, authenticate=authenticate) as server:
        say(server.uri)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


class Running:
    """The server process, and the lines that it writes."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        assert process.stdout is not None
        self._out = process.stdout
        self.uri = self._out.readline().strip()
        self._said: queue.Queue[str] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        for line in self._out:
            self._said.put(line.strip())

    def says(self, wanted: str) -> None:
        """Wait until it writes *wanted*."""
        while self._said.get(timeout=50) != wanted:
            pass

    def join(self) -> None:
        self._reader.join()


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    ) as process:
        running = Running(process)
        yield running
        assert process.stdin is not None
        process.stdin.close()
        running.join()


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run the command in this process; its exit status, output and errors."""
    monkeypatch.setenv("SECRET", "secret")

    def run(*arguments: str) -> tuple[int, str, str]:
        status = main(arguments)
        written = capfd.readouterr()
        return status, written.out, written.err

    return run


# -- output ----------------------------------------------------------------------------------------
def test_a_stream_is_written_line_by_line_under_the_given_demand(
    server: Running, command: Command
) -> None:
    assert command(server.uri, "--route", "range.5", "--request-n", "2") == (
        0,
        "0\n1\n2\n3\n4\n",
        "",
    )
    server.says("requested 2")
    status, out, err = command(f"{server.uri}?route=range.9999&n=7", "--take", "3", "--progress")
    assert (status, out) == (0, "0\n1\n2\n")
    assert err.startswith("requested 7")
    assert "received 3" in err
    server.says("requested 3")  # no more than --take needs


def test_the_other_models_and_their_options(
    server: Running, command: Command, tmp_path: Path
) -> None:
    ask = (server.uri, "--response", "--route")
    assert command(*ask, "echo", "--data", "häh") == (0, "häh\n", "")
    (tmp_path / "data").write_text('{"a": [1]}')
    json = command(*ask, "echo", "--data", f"@{tmp_path}/data", "--type", "application/json")
    assert json == (0, '{"a":[1]}\n', "")
    assert command(*ask, "raw", "--data", "x", "--show", "hex") == (0, "78ff\n", "")
    assert command(*ask, "raw", "--data", "x") == (0, "x\\xff\n", "")
    assert command(*ask, "echo", "--data", "x", "--show", "raw") == (0, "x", "")
    (tmp_path / "token").write_text("secret\n")
    for auth in ("simple:ann:secret", "bearer:$SECRET", f"bearer:@{tmp_path}/token"):
        assert command(*ask, "me", "--auth", auth) == (0, "ann\n", "")
    assert command(*ask, "me") == (0, "anonymous\n", "")
    assert command(*ask, "nothing") == (0, "", "")


def test_a_channel_sends_data_or_the_lines_of_standard_input(
    server: Running, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel = (server.uri, "--route", "upper", "--channel")
    assert command(*channel, "--data", "a", "--data", "b") == (0, "A\nB\n", "")
    (tmp_path / "lines").write_text("e\r\nf")
    with (tmp_path / "lines").open() as lines:
        monkeypatch.setattr(sys, "stdin", lines)
        assert command(*channel) == (0, "E\nF\n", "")
    reader, writer = os.pipe()
    with open(reader) as lines, open(writer, "w") as pipe:
        monkeypatch.setattr(sys, "stdin", lines)
        pipe.write("c\nd\n")
        pipe.close()
        assert command(*channel, "--data", "-") == (0, "C\nD\n", "")


def test_fire_and_forget_and_metadata_push_arrive(server: Running, command: Command) -> None:
    forget = (server.uri, "--fnf", "--route", "log", "--data", "x")
    assert command(*forget, "--metadata", "application/x.id=7") == (0, "", "")
    server.says("log x b'7'")
    assert command(server.uri, "--push", "--metadata", "application/x.id=8") == (0, "", "")
    server.says("push 8")


# -- errors ----------------------------------------------------------------------------------------
def test_an_error_is_reported_in_one_line(
    server: Running, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reactive_aio.rsocket.command.RETRY_DELAY", 0.01)
    for arguments, status, said in (
        ((server.uri, "--route", "full"), 1, "0x400: no seats left"),
        ((server.uri, "--route", "nowhere", "--response"), 1, "no such route"),
        ((server.uri, "--route", "wait", "--timeout", "0.2"), 1, "did not end within 0.2 s"),
        (("tcp://127.0.0.1:1", "--retry", "3"), 1, "Connect call failed"),
        (("http://there",), 2, "write one of tcp://"),
        ((server.uri, "--request-n", "0"), 2, "at least 1"),
        ((server.uri, "--timeout", "x"), 2, "must be seconds"),
        ((server.uri, "--type", "json"), 2, "a type such as application/json, not 'json'"),
        ((server.uri, "--type", "a/\u00e9"), 2, "a type such as application/json"),
        ((server.uri, "--fnf", "--stream"), 2, "not allowed with"),
        ((server.uri, "--data", "@/nowhere/at/all"), 2, "No such file"),
        ((server.uri, "--auth", "basic:x"), 2, "simple:USER:PASSWORD"),
        ((server.uri, "--auth", "bearer:$NOWHERE"), 2, "no variable NOWHERE"),
        ((server.uri, "--metadata", "x"), 2, "MIME=TEXT"),
        ((server.uri, "--data", "a", "--data", "b"), 2, "only --channel takes"),
        ((server.uri, "--data", "-"), 2, "for --channel only"),
        ((server.uri, "--insecure"), 2, "tls:// and wss://"),
        (("tls://there:1", "--ca", "/nowhere/at/all"), 2, "certificates"),
        (("tls://there:1", "--key", "/nowhere/at/all"), 2, "--cert as well"),
    ):
        ended, out, err = command(*arguments)
        assert (ended, out) == (status, "first\n" if "wait" in arguments else "")
        assert said in err
        assert err.count("\n") == 1


# -- certificates ----------------------------------------------------------------------------------
@dataclass
class Files:
    """A folder of certificates, and a server context that requires client certificates."""

    folder: Path
    server: ssl.SSLContext


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    ca, path = trustme.CA(), tmp_path_factory.mktemp("tls")
    mine = ca.issue_cert("localhost", "127.0.0.1")
    (path / "ca").write_bytes(ca.cert_pem.bytes())
    (path / "both").write_bytes(mine.private_key_and_cert_chain_pem.bytes())
    (path / "key").write_bytes(mine.private_key_pem.bytes())
    (path / "cert").write_bytes(mine.cert_chain_pems[0].bytes())
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=path / "ca")
    server.load_cert_chain(path / "both")
    server.verify_mode = ssl.CERT_REQUIRED
    return Files(path, server)


@pytest.mark.parametrize("transport", ["tls", "wss"])
@pytest.mark.parametrize(
    "how", ["--ca CA --cert BOTH", "--ca CA --cert CERT --key KEY", "--insecure --cert BOTH"]
)
async def test_client_and_server_certificates_are_verified(
    files: Files, transport: str, how: str, capfd: pytest.CaptureFixture[str]
) -> None:
    routes = Router()
    routes.route("hello")(lambda: "hello")
    wanted = [str(files.folder / each.lower()) if each.isupper() else each for each in how.split()]
    async with await serve(f"{transport}://127.0.0.1:0", routes, ssl=files.server) as server:
        call = [server.uri, "--route", "hello", "--response", *wanted]
        await execute(await asyncio.to_thread(parse_arguments, call))
    written = await asyncio.to_thread(capfd.readouterr)
    assert written.out == "hello\n"


async def test_an_untrusted_server_is_refused(
    files: Files, expects_loop_errors: list[Context]
) -> None:
    async with await serve("tls://127.0.0.1:0", Router(), ssl=files.server) as server:
        wish = await asyncio.to_thread(
            parse_arguments, [server.uri, "--cert", str(files.folder / "both")]
        )
        with pytest.raises(ConnectionLost, match="certificate"):
            await execute(wish)
    # Some versions of asyncio report an aborted handshake.
    assert all("transport" in each for each in expects_loop_errors)


# -- the command in a process of its own -----------------------------------------------------------
def started(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-X", "dev", "-m", "reactive_aio.rsocket", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent there")
def test_ctrl_c_cancels_the_stream(server: Running) -> None:
    with started(server.uri, "--route", "wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "first\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=50)
    assert (process.returncode, out, err) == (130, "", "")
    server.says("cancelled")


@pytest.mark.parametrize(
    ("closed", "arguments", "said"),
    [
        ("stdout", ("--route", "range.3"), "standard output is closed"),
        ("stdout", ("--route", "range.3", "--response"), "standard output is closed"),
        ("stdin", ("--route", "upper", "--channel"), "standard input is closed"),
    ],
)
def test_a_closed_stream_is_reported_in_one_line(
    server: Running,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    closed: str,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.setattr(sys, closed, None)
    assert command(server.uri, *arguments) == (1, "", f"{PROGRAM}: {said}\n")


def test_streams_that_are_not_needed_may_be_closed(
    server: Running, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert command(server.uri, "--route", "range.2", "--progress") == (0, "0\n1\n", "")
    assert command("http://there") == (2, "", "")
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stdin", None)
    assert command(server.uri, "--fnf", "--route", "log", "--data", "y") == (0, "", "")
    server.says("log y None")


def test_a_closed_output_pipe_ends_the_command(server: Running) -> None:
    with started(server.uri, "--route", "range.1000000") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        assert process.wait(50) == 0
        assert process.stderr.read() == ""
