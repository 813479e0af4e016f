"""This library's server follows every rule of the wire, over each transport."""

import asyncio
import os
import ssl
from pathlib import Path
from typing import Any, Final

import pytest

from reactive_aio.rsocket import Limits, Resumption, SimpleAuth, asgi_app, serve
from reactive_aio.tck import Outcome, Report, Timeouts
from reactive_aio.tck.network.judge import NetworkJudge, select_laws
from reactive_aio.tck.network.server import ServerProfile
from reactive_aio.tck.network.transports import ServerAddress
from tests.asgi.serving import running
from tests.interop.kit_routes import kit_routes
from tests.rsocket.test_asgi_app import mounted_in_starlette
from tests.rsocket.test_auth import Authority

pytestmark = pytest.mark.slow

PATIENT: Final = Timeouts(response=20.0, reduced_response=20.0, quiet_period=0.02)
SOON: Final = Limits(setup_timeout=1.5, frame_timeout=1.5, max_payload=32 * 1024 * 1024)


def lets_in(credentials: Any) -> bool:
    return not isinstance(credentials, SimpleAuth) or credentials.password != "wrong"


STRICT: Final[Any] = {"limits": SOON, "authenticate": lets_in, "on_error": str}


async def judged(
    uri: str, *rules: str, tls: ssl.SSLContext | None = None, **options: Any
) -> Report:
    async with await serve(uri, kit_routes(), **STRICT, **options) as server:
        return await judge(server.uri, *rules, tls=tls)


async def judge(uri: str, *rules: str, tls: ssl.SSLContext | None = None) -> Report:
    profile = ServerProfile(rejected_user=("me", "wrong"), patience=20, pid=os.getpid())
    judge = NetworkJudge(ServerAddress.parse(uri), profile, PATIENT, tls)
    return await judge.run(uri, select_laws(rules))


def holds(report: Report, *silent: str) -> None:
    assert report.having(Outcome.FAIL) == [], str(report)
    assert {verdict.law for verdict in report.having(Outcome.NOT_JUDGED)} == set(silent)


MESSAGES: Final = [law.name for law in select_laws(["N.37"])]


@pytest.mark.thorough
async def test_all_laws_of_the_wire_hold_over_tcp() -> None:
    holds(await judged("tcp://127.0.0.1:0"), *MESSAGES)


# Only the transport differs: one event loop is enough.
@pytest.mark.thorough
def test_all_laws_of_the_wire_hold_over_unix_sockets(tmp_path: Path) -> None:
    holds(asyncio.run(judged(f"unix://{tmp_path}/socket")), *MESSAGES)


@pytest.mark.thorough
def test_all_laws_of_the_wire_hold_over_websocket() -> None:
    report = asyncio.run(judged("ws://127.0.0.1:0/rsocket"))
    holds(report, "wire34_closes_on_half_a_frame")


@pytest.mark.thorough
def test_all_laws_of_the_wire_hold_over_tls() -> None:
    authority = Authority()
    uri = "tls://127.0.0.1:0"
    holds(asyncio.run(judged(uri, ssl=authority.server, tls=authority.anonymous)), *MESSAGES)


@pytest.mark.thorough
def test_all_laws_of_the_wire_hold_in_an_asgi_application() -> None:
    async def run() -> Report:
        async with running(mounted_in_starlette(asgi_app(kit_routes(), **STRICT))) as where:
            return await judge(f"ws://{where}/rsocket/")

    holds(asyncio.run(run()), "wire34_closes_on_half_a_frame")


async def test_the_laws_of_resumption_hold() -> None:
    report = await judged("tcp://127.0.0.1:0", "N.4", resume=Resumption())
    assert report["wire4_grants_or_refuses_to_resume"].outcome is Outcome.PASS, str(report)
    assert report.ok, str(report)


async def test_oversized_payloads_are_refused() -> None:
    async with await serve("tcp://127.0.0.1:0", kit_routes()) as server:
        report = await judge(server.uri, "N.31", "N.32")
    assert report.having(Outcome.FAIL) == [], str(report)
    verdict = report["wire31_carries_payloads_longer_than_a_frame"]
    assert "were refused by ERROR 0x204" in verdict.why
