"""Each law of the wire detects servers that break it, with the reason; a conforming one passes."""

import asyncio
import os
from typing import Final

import pytest

from reactive_aio.tck import Outcome, Report, Timeouts
from reactive_aio.tck.network.judge import NetworkJudge, select_laws
from reactive_aio.tck.network.laws import WIRE_LAWS
from reactive_aio.tck.network.server import ServerProfile
from reactive_aio.tck.network.transports import ServerAddress
from reactive_aio.tck.rules import WIRE_RULES
from tests.tck.broken_servers import BROKEN_SERVERS, BrokenServer
from tests.tck.flawed_server import running_server

REJECTED_USER: Final = ("me", "wrong")
HASTY: Final = Timeouts(response=0.3, reduced_response=0.2, quiet_period=0.01)
PATIENT: Final = Timeouts(response=20.0, reduced_response=20.0, quiet_period=0.02)
"""A conforming server gets enough time on a busy machine."""


async def judged(broken: BrokenServer) -> Report:
    # On one loop only: the kit runs on its own.
    async with running_server(*broken.flaw.split(" and "), websocket=broken.is_websocket) as uri:
        offer = ServerProfile(rejected_user=REJECTED_USER, patience=0.6, pid=os.getpid())
        return await NetworkJudge(ServerAddress.parse(uri), offer, HASTY).run(
            uri, select_laws([broken.law])
        )


@pytest.mark.slow
@pytest.mark.parametrize("broken", BROKEN_SERVERS, ids=str)
def test_a_law_of_the_wire_detects_a_broken_server(broken: BrokenServer) -> None:
    [verdict] = asyncio.run(judged(broken))
    assert verdict.outcome is Outcome.FAIL, str(verdict)
    assert broken.words in verdict.why, str(verdict)
    assert verdict.broken == broken.rule, str(verdict)
    assert "<--" in verdict.log or broken.rule == "N.13"


def test_every_law_of_the_wire_has_a_server_that_breaks_it() -> None:
    missing = WIRE_LAWS.keys() - {broken.law for broken in BROKEN_SERVERS}
    unknown = {broken.law for broken in BROKEN_SERVERS} - WIRE_LAWS.keys()
    assert not missing, (
        f"add a row to tests/tck/broken_servers.py for each of {missing}, and its flaw to "
        "tests/tck/flawed_server.py; then run python -m tests.tck.tables"
    )
    assert not unknown, f"tests/tck/broken_servers.py names laws that do not exist: {unknown}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "websocket",
    [False, pytest.param(True, marks=pytest.mark.thorough)],
    ids=["TCP", "WebSocket"],
)
def test_a_conforming_server_passes(websocket: bool) -> None:
    async def all_laws() -> Report:
        async with running_server(websocket=websocket) as uri:
            offer = ServerProfile(rejected_user=REJECTED_USER, patience=20, pid=os.getpid())
            return await NetworkJudge(ServerAddress.parse(uri), offer, PATIENT).run(
                uri, select_laws([])
            )

    report = asyncio.run(all_laws())
    assert report.having(Outcome.FAIL) == [], str(report)
    unjudged = {verdict.law for verdict in report.having(Outcome.NOT_JUDGED)}
    assert unjudged == (
        {"wire34_closes_on_half_a_frame"}
        if websocket
        else {law.name for law in select_laws(["N.37"])}
    )


async def test_a_server_may_complete_a_while_after_the_last_element() -> None:
    async with running_server("completes after a while") as uri:
        judge = NetworkJudge(ServerAddress.parse(uri), ServerProfile(), PATIENT)
        laws = [name for name in WIRE_LAWS if name.startswith("wire15")]
        report = await judge.run(uri, select_laws(laws))
    assert report.having(Outcome.FAIL) == [], str(report)


def test_every_rule_of_the_wire_has_a_law() -> None:
    # N.13 is judged after each law.
    missing = WIRE_RULES.keys() - {law.rule for law in WIRE_LAWS.values()} - {"N.13"}
    assert not missing, f"add a law for each of {missing} to a module of tck/network/laws"


async def test_laws_that_need_a_missing_route_are_not_judged_with_the_reason() -> None:
    offer = ServerProfile(routes={"echo": "tck.echo", "stream": "elsewhere"})
    async with running_server() as uri:
        judge = NetworkJudge(ServerAddress.parse(uri), offer, PATIENT)
        laws = ["wire20_answers_once", "wire14_sends_one_for_one", "wire22_does_not_answer"
                "_fire_and_forget", "wire38_uses_every_second_stream_id"]  # fmt: skip
        report = await judge.run(uri, select_laws(laws))
    assert report["wire20_answers_once"].outcome is Outcome.PASS
    assert "does not offer 'stream'" in report["wire14_sends_one_for_one"].why
    assert "ERROR 0x204" in report["wire14_sends_one_for_one"].why
    assert "the profile has no route 'ask'" in report["wire38_uses_every_second_stream_id"].why
