"""This library's server follows every rule of the wire, over each transport."""

import asyncio
import os
import ssl
from pathlib import Path
from typing import Any, Final

import pytest

from reactive_aio.rsocket import Limits, Resumption, SimpleAuth, asgi_app, serve
from reactive_aio.tck import Outcome, Report, Terms
from reactive_aio.tck.network.judge import NetworkJudge, chosen
from reactive_aio.tck.network.links import Place
from reactive_aio.tck.network.offer import Offer
from tests.interop.offer import offering
from tests.rsocket.test_asgi_app import mounted_in_starlette, running
from tests.rsocket.test_auth import Authority

pytestmark = pytest.mark.slow

PATIENT: Final = Terms(come=20.0, come_again=20.0, quiet=0.02)
SOON: Final = Limits(setup_timeout=1.5, frame_timeout=1.5, max_payload=32 * 1024 * 1024)


def lets_in(credentials: Any) -> bool:
    return not isinstance(credentials, SimpleAuth) or credentials.password != "wrong"


STRICT: Final[Any] = {"limits": SOON, "authenticate": lets_in, "on_error": str}


async def judged(
    uri: str, *rules: str, trusted: ssl.SSLContext | None = None, **options: Any
) -> Report:
    async with await serve(uri, offering(), **STRICT, **options) as server:
        return await judge(server.uri, *rules, trusted=trusted)


async def judge(uri: str, *rules: str, trusted: ssl.SSLContext | None = None) -> Report:
    offer = Offer(refused=("me", "wrong"), patience=20, pid=os.getpid())
    return await NetworkJudge(Place.parse(uri), offer, PATIENT, trusted).run(uri, chosen(rules))


def holds(report: Report, *silent: str) -> None:
    assert report.having(Outcome.FAIL) == [], str(report)
    assert {verdict.law for verdict in report.having(Outcome.NOT_JUDGED)} == set(silent)


MESSAGES: Final = [law.name for law in chosen(["N.37"])]


async def test_all_laws_of_the_wire_hold_over_tcp() -> None:
    holds(await judged("tcp://127.0.0.1:0"), *MESSAGES)


# Only the transport differs: one event loop is enough.
@pytest.mark.thorough
def test_all_laws_of_the_wire_hold_over_unix_sockets(tmp_path: Path) -> None:
    holds(asyncio.run(judged(f"unix://{tmp_path}/socket")), *MESSAGES)


def test_all_laws_of_the_wire_hold_over_websocket() -> None:
    report = asyncio.run(judged("ws://127.0.0.1:0/rsocket"))
    holds(report, "wire34_wants_the_rest_of_a_frame_soon")


@pytest.mark.thorough
def test_all_laws_of_the_wire_hold_over_tls() -> None:
    authority = Authority()
    uri = "tls://127.0.0.1:0"
    holds(asyncio.run(judged(uri, ssl=authority.server, trusted=authority.anonymous)), *MESSAGES)


def test_all_laws_of_the_wire_hold_in_an_asgi_application() -> None:
    async def run() -> Report:
        async with running(mounted_in_starlette(asgi_app(offering(), **STRICT))) as where:
            return await judge(f"ws://{where}/rsocket/")

    holds(asyncio.run(run()), "wire34_wants_the_rest_of_a_frame_soon")


async def test_the_laws_of_resumption_hold() -> None:
    report = await judged("tcp://127.0.0.1:0", "N.4", resume=Resumption())
    assert report["wire4_grants_or_refuses_to_resume"].outcome is Outcome.PASS, str(report)
    assert report.ok, str(report)


async def test_oversized_payloads_are_refused() -> None:
    async with await serve("tcp://127.0.0.1:0", offering()) as server:
        report = await judge(server.uri, "N.31", "N.32")
    assert report.having(Outcome.FAIL) == [], str(report)
    assert "were refused by ERROR 0x204" in report["wire31_carries_what_is_longer_than_a_frame"].why
