"""Each law of the wire catches a server that breaks it and says what it saw; a sound one passes."""

import asyncio
import os
from typing import Final

import pytest

from reactive_aio.tck import Outcome, Report, Timeouts
from reactive_aio.tck.network.judge import NetworkJudge, select_laws
from reactive_aio.tck.network.laws import WIRE_LAWS
from reactive_aio.tck.network.transports import ServerAddress
from reactive_aio.tck.network.server_profile import ServerProfile
from reactive_aio.tck.network.rules import WIRE_RULES
from tests.tck.broken_servers import SERVERS, BrokenServer
from tests.tck.flawed_server import listening

REFUSED: Final = ("me", "wrong")
HASTY: Final = Timeouts(response=0.3, reduced_response=0.2, quiet_period=0.01)
PATIENT: Final = Timeouts(response=20.0, reduced_response=20.0, quiet_period=0.02)
"""What an honest server does is waited for, however busy the machine is."""


async def judged(broken: BrokenServer) -> Report:
    # Not again on each kind of loop: it is the kit's own that counts.
    async with listening(*broken.flaw.split(" and "), websocket=broken.websocket) as uri:
        offer = ServerProfile(refused=REFUSED, patience=0.6, pid=os.getpid())
        return await NetworkJudge(ServerAddress.parse(uri), offer, HASTY).run(uri, select_laws([broken.law]))


@pytest.mark.parametrize("broken", SERVERS, ids=str)
def test_a_law_of_the_wire_catches(broken: BrokenServer) -> None:
    [verdict] = asyncio.run(judged(broken))
    assert verdict.outcome is Outcome.FAIL, str(verdict)
    assert broken.words in verdict.why, str(verdict)
    assert verdict.broken == broken.rule, str(verdict)
    assert "<--" in verdict.log or broken.rule == "N.13"


def test_no_law_of_the_wire_is_without_a_server_that_breaks_it() -> None:
    assert set(WIRE_LAWS) == {broken.law for broken in SERVERS}


@pytest.mark.parametrize("websocket", [False, True], ids=["TCP", "WebSocket"])
def test_a_sound_server_passes(websocket: bool) -> None:
    async def all_laws() -> Report:
        async with listening(websocket=websocket) as uri:
            offer = ServerProfile(refused=REFUSED, patience=20, pid=os.getpid())
            return await NetworkJudge(ServerAddress.parse(uri), offer, PATIENT).run(uri, select_laws([]))

    report = asyncio.run(all_laws())
    assert report.having(Outcome.FAIL) == [], str(report)
    silent = {verdict.law for verdict in report.having(Outcome.NOT_JUDGED)}
    assert silent == (
        {"wire34_closes_on_half_a_frame"}
        if websocket
        else {law.name for law in select_laws(["N.37"])}
    )


def test_every_rule_of_the_wire_is_judged() -> None:
    # Whether others are served is looked at after each law.
    assert {law.rule for law in WIRE_LAWS.values()} | {"N.13"} == set(WIRE_RULES)


async def test_what_is_not_offered_is_not_judged_and_it_is_said_why() -> None:
    offer = ServerProfile(routes={"echo": "tck.echo", "stream": "elsewhere"})
    async with listening() as uri:
        judge = NetworkJudge(ServerAddress.parse(uri), offer, PATIENT)
        laws = ["wire20_answers_once", "wire14_sends_one_for_one", "wire22_does_not_answer"
                "_fire_and_forget", "wire38_uses_every_second_stream_id"]  # fmt: skip
        report = await judge.run(uri, select_laws(laws))
    assert report["wire20_answers_once"].outcome is Outcome.PASS
    assert "does not offer 'stream'" in report["wire14_sends_one_for_one"].why
    assert "ERROR 0x204" in report["wire14_sends_one_for_one"].why
    assert "said not to offer 'ask'" in report["wire38_uses_every_second_stream_id"].why
