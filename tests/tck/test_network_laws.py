"""Each law of the wire catches a server that breaks it and says what it saw; a sound one passes."""

import asyncio
import os
from typing import Final

import pytest

from reactive_aio.tck import Outcome, Report, Terms
from reactive_aio.tck.network.judge import NetworkJudge, chosen
from reactive_aio.tck.network.laws import WIRE_LAWS
from reactive_aio.tck.network.links import Place
from reactive_aio.tck.network.offer import Offer
from reactive_aio.tck.network.rules import WIRE_RULES
from tests.tck.broken_servers import SERVERS, BrokenServer
from tests.tck.servers import listening

REFUSED: Final = ("me", "wrong")
HASTY: Final = Terms(come=0.3, come_again=0.2, quiet=0.01)
PATIENT: Final = Terms(come=20.0, come_again=20.0, quiet=0.02)
"""What an honest server does is waited for, however busy the machine is."""


async def judged(broken: BrokenServer) -> Report:
    # Not again on each kind of loop: it is the kit's own that counts.
    async with listening(*broken.flaw.split(" and "), websocket=broken.websocket) as uri:
        offer = Offer(refused=REFUSED, patience=0.6, pid=os.getpid())
        return await NetworkJudge(Place.parse(uri), offer, HASTY).run(uri, chosen([broken.law]))


@pytest.mark.slow
@pytest.mark.parametrize("broken", SERVERS, ids=str)
def test_a_law_of_the_wire_catches(broken: BrokenServer) -> None:
    [verdict] = asyncio.run(judged(broken))
    assert verdict.outcome is Outcome.FAIL, str(verdict)
    assert broken.words in verdict.why, str(verdict)
    assert verdict.broken == broken.rule, str(verdict)
    assert "<--" in verdict.log or broken.rule == "N.13"


def test_no_law_of_the_wire_is_without_a_server_that_breaks_it() -> None:
    assert set(WIRE_LAWS) == {broken.law for broken in SERVERS}


@pytest.mark.slow
@pytest.mark.parametrize("websocket", [False, True], ids=["TCP", "WebSocket"])
def test_a_sound_server_passes(websocket: bool) -> None:
    async def all_laws() -> Report:
        async with listening(websocket=websocket) as uri:
            offer = Offer(refused=REFUSED, patience=20, pid=os.getpid())
            return await NetworkJudge(Place.parse(uri), offer, PATIENT).run(uri, chosen([]))

    report = asyncio.run(all_laws())
    assert report.having(Outcome.FAIL) == [], str(report)
    silent = {verdict.law for verdict in report.having(Outcome.NOT_JUDGED)}
    assert silent == (
        {"wire34_wants_the_rest_of_a_frame_soon"}
        if websocket
        else {law.name for law in chosen(["N.37"])}
    )


def test_every_rule_of_the_wire_is_judged() -> None:
    # Whether others are served is looked at after each law.
    assert {law.rule for law in WIRE_LAWS.values()} | {"N.13"} == set(WIRE_RULES)


async def test_what_is_not_offered_is_not_judged_and_it_is_said_why() -> None:
    offer = Offer(routes={"echo": "tck.echo", "stream": "elsewhere"})
    async with listening() as uri:
        judge = NetworkJudge(Place.parse(uri), offer, PATIENT)
        laws = ["wire20_answers_once", "wire14_sends_one_for_one", "wire22_does_not_answer"
                "_fire_and_forget", "wire38_counts_its_streams_by_two"]  # fmt: skip
        report = await judge.run(uri, chosen(laws))
    assert report["wire20_answers_once"].outcome is Outcome.PASS
    assert "does not offer 'stream'" in report["wire14_sends_one_for_one"].why
    assert "ERROR 0x204" in report["wire14_sends_one_for_one"].why
    assert "said not to offer 'ask'" in report["wire38_counts_its_streams_by_two"].why
