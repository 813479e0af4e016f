"""rsocket-js, both versions: its clients with our server, our client with its servers."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
import pytest_asyncio

from reactive_aio.rsocket import (
    BYTES,
    Limits,
    Resumption,
    SetupRejected,
    SimpleAuth,
    StreamFailed,
    connect,
    serve,
)
from reactive_aio.testing import SubscriberProbe
from tests.harness.outages import proxy_of
from tests.interop.node import JsPeer
from tests.interop.our_client import receive_what_is_requested, use_every_model
from tests.interop.recording_routes import RecordingRoutes

pytestmark = pytest.mark.slow

MIB: Final = 1024 * 1024
LARGE: Final = 17 * MIB
LINES: Final = ("alpha", "legacy")
TRANSPORTS: Final = ("tcp", "ws")


@dataclass
class Meeting:
    """A peer, a transport, and our server for its client."""

    line: str
    transport: str
    peer: JsPeer
    served: RecordingRoutes
    ours: str

    @property
    def theirs(self) -> str:
        return self.peer.uri(self.transport)

    async def ask(self, script: str, route: str = "", **command: Any) -> Any:
        """The report of the client in Node about *script*."""
        return await self.peer.ask(self.ours, script, route=route, **command)


@pytest.fixture(params=[f"{line} {each}" for line in LINES for each in TRANSPORTS])
def combination(request: pytest.FixtureRequest) -> tuple[str, str, JsPeer]:
    line, transport = request.param.split()
    return line, transport, request.getfixturevalue(line)


@pytest_asyncio.fixture
async def meeting(combination: tuple[str, str, JsPeer]) -> AsyncIterator[Meeting]:
    line, transport, peer = combination
    served = RecordingRoutes()
    async with await serve(
        f"{transport}://127.0.0.1:0",
        served.router,
        authenticate=lambda who: not isinstance(who, SimpleAuth) or who.password == "right",
        limits=Limits(max_payload=2 * LARGE),
        on_error=str,
    ) as server:
        yield Meeting(line, transport, peer, served, server.uri)


# -- its clients, our server -----------------------------------------------------------------------
async def test_its_client_uses_every_model(meeting: Meeting) -> None:
    assert (await meeting.ask("response", "echo", data="hello"))["elements"] == ["hello"]
    assert (await meeting.ask("response", "echo"))["count"] == 1  # an empty element counts
    report = await meeting.ask("stream 100", "counted.3")
    assert (report["elements"], report["end"]) == (["0", "1", "2"], "complete")
    await meeting.ask("fnf", "forget", data="never mind")
    assert await asyncio.wait_for(meeting.served.forgotten.get(), 20) == b"never mind"
    report = await meeting.ask("channel 10", "both", data="a", rest=["b", "c", "d"])
    assert (report["elements"], report["end"]) == (["A", "B", "C", "D"], "complete")


async def test_its_demand_reaches_our_publisher(meeting: Meeting) -> None:
    report = await meeting.ask("stream 2 3 1 cancel", "counted.100")
    assert report["elements"] == [str(each) for each in range(6)]
    assert meeting.served.requests == [2, 3, 1]
    assert await asyncio.wait_for(meeting.served.ends.get(), 20) == "cancelled"


async def test_its_maximum_demand_is_unbounded_demand(meeting: Meeting) -> None:
    report = await meeting.ask(f"stream {2**31 - 1}", "counted.1000")
    assert (report["count"], report["end"]) == (1000, "complete")


async def test_our_demand_reaches_its_channel(meeting: Meeting) -> None:
    report = await meeting.ask("channel 3", "both", data="a", rest=["b", "c"])
    assert report["elements"] == ["A", "B", "C"]
    assert sum(meeting.served.requests) == 3
    if "asked" in report:
        assert report["asked"] == 2  # the first element came with the request


async def test_it_receives_errors_with_their_codes_and_without_secrets(meeting: Meeting) -> None:
    for code in (0x202, 0x301, 0x7FFFFFFF):
        report = await meeting.ask("stream 5", f"refuse.{code}")
        assert (report["elements"], report["end"]) == (["1"], f"error {code}")
        assert "as requested" in report["message"]
    report = await meeting.ask("response", "fail")
    assert report["end"] == f"error {0x201}"
    assert "secret" not in report["message"]
    assert (await meeting.ask("response", "no.such.route"))["end"] == f"error {0x204}"


async def test_wrong_credentials_are_refused(meeting: Meeting) -> None:
    report = await meeting.ask("fnf", "forget", data="secret", user=["me", "wrong"])
    report = await meeting.ask("response", "echo", data="secret", user=["me", "wrong"])
    assert report["end"].startswith(("closed", "error", "no connection")), report
    assert not report.get("elements")
    assert meeting.served.forgotten.empty()
    report = await meeting.ask("response", "echo", data="come in", user=["me", "right"])
    assert report["elements"] == ["come in"]


async def test_composite_metadata_arrives_item_by_item(meeting: Meeting) -> None:
    items = {"text/plain": "plain", "application/x.mine": "mine"}
    report = await meeting.ask("response", "seen", metadata=items)
    assert report["end"] == "complete", report
    [seen] = report["elements"]
    assert "message/x.rsocket.routing.v0=b'\\x04seen'" in seen
    assert "text/plain=b'plain'" in seen
    report = await meeting.ask("response", "seen", metadata={"application/x.mine": "mine"})
    assert "application/x.mine=b'mine'" in report["elements"][0]


async def test_it_serves_our_requests(meeting: Meeting) -> None:
    assert (await meeting.ask("response", "back"))["elements"] == ["you said hello"]


async def test_it_reassembles_our_fragments(meeting: Meeting) -> None:
    report = await meeting.ask("response", f"large.{3 * MIB}")
    assert (report["bytes"], report["end"]) == (3 * MIB, "complete")


async def test_we_reassemble_its_fragments(meeting: Meeting) -> None:
    # 0.0.27 does not fragment what it sends: one frame is the maximum.
    cut = {"fragment": 1000} if meeting.line == "alpha" else {}
    report = await meeting.ask("response", "size", size=300_000, **cut)
    assert report["elements"] == ["300000"]


# -- our client, its servers -----------------------------------------------------------------------
async def test_our_client_uses_every_model(meeting: Meeting) -> None:
    await use_every_model(meeting.theirs, letters=50)


async def test_its_server_sends_what_we_request_and_no_more(meeting: Meeting) -> None:
    await receive_what_is_requested(meeting.theirs)


async def test_an_endless_stream_is_cancelled(meeting: Meeting) -> None:
    async with await connect(meeting.theirs) as client:
        count = 0
        async with client.request_stream(route="tck.endless").stream() as elements:
            async for element in elements:
                assert len(element) == 1000
                count += 1
                if count == 1000:
                    break
        assert await client.request_response(b"on", route="tck.echo") == b"on"


async def test_its_errors_arrive_with_code_and_text(meeting: Meeting) -> None:
    async with await connect(meeting.theirs) as client:
        with pytest.raises(StreamFailed, match="refused no such route") as caught:
            await client.request_response(route="no such route")
        assert caught.value.code == 0x201
        received: list[bytes] = []
        with pytest.raises(StreamFailed, match=r"refused tck\.fail"):
            await client.request_stream(route="tck.fail").for_each(received.append)
        assert received == [b"1"]


async def test_its_server_refuses_our_credentials(meeting: Meeting) -> None:
    with pytest.raises(SetupRejected, match="go away"):
        await connect(meeting.theirs, credentials=SimpleAuth("me", "wrong"))


async def test_it_receives_our_metadata_item_by_item(meeting: Meeting) -> None:
    async with await connect(meeting.theirs) as client:
        seen = await client.request_response(
            route="tck.metadata", metadata=(("text/plain", b"plain"), ("x/mine", b"mine"))
        )
    assert b"\x0ctck.metadata" in seen
    assert b"plain" in seen
    assert b"\x06x/mine"[1:] in seen


async def test_a_fragmented_payload_is_echoed(meeting: Meeting) -> None:
    data = bytes(range(256)) * 2000
    small = Limits(mtu=5000)
    async with await connect(meeting.theirs, limits=small, codec=BYTES) as client:
        assert await client.request_response(data, route="tck.echo") == data


# -- features of one version -----------------------------------------------------------------------
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_payloads_larger_than_a_frame_are_echoed(alpha: JsPeer, transport: str) -> None:
    """1.0.0-alpha.3 sends and accepts more than 16 MiB in fragments; 0.0.27 does not fragment."""
    served, limits = RecordingRoutes(), Limits(max_payload=2 * LARGE)
    async with await serve(f"{transport}://127.0.0.1:0", served.router, limits=limits) as server:
        report = await alpha.ask(server.uri, "response", route="size", size=LARGE, fragment=4 * MIB)
        assert report["elements"] == [str(LARGE)]


async def test_its_client_resumes_a_session_at_our_server(alpha: JsPeer) -> None:
    served = RecordingRoutes()
    async with await serve("tcp://127.0.0.1:0", served.router, resume=Resumption()) as server:
        report = await alpha.ask(server.uri, "stream 5 drop 5", route="counted.10", resume=True)
    assert report["end"] == "complete", report
    assert report["elements"] == [str(each) for each in range(10)]
    assert served.requests == [5, 5]


async def test_our_client_resumes_a_session_at_its_server(alpha: JsPeer) -> None:
    async with (
        proxy_of(alpha.uri("tcp")) as proxy,
        await connect(proxy.url, resume=Resumption()) as client,
    ):
        probe: SubscriberProbe[bytes] = SubscriberProbe(request=5)
        client.request_stream(route="tck.stream.10").subscribe(probe)
        await probe.wait_for_signals(5)
        proxy.cut()
        probe.request(6)
        await probe.end()
        assert probe.elements == [b"%d" % each for each in range(10)]
        assert proxy.connections == 2
