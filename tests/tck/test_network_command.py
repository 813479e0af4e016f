"""``python -m reactive_aio.tck network`` says what it found, and in its exit status."""

import json
import re
import socket
import sys
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

import pytest

from reactive_aio.tck.command import main
from reactive_aio.tck.network.laws import WIRE_LAWS
from reactive_aio.tck.network.offer import OFFERS
from reactive_aio.tck.network.rules import WIRE_RULES

pytestmark = pytest.mark.slow

LAW: Final = "wire14_sends_one_for_one"


def free_port() -> int:
    with socket.socket() as any_:
        any_.bind(("127.0.0.1", 0))
        port: int = any_.getsockname()[1]
        return port


def judged(*arguments: str, flaws: tuple[str, ...] = ()) -> int:
    """The exit status of the kit for a server that it starts itself."""
    port = free_port()
    command = f"{sys.executable} -m tests.tck.servers {port} " + " ".join(f"'{f}'" for f in flaws)
    return main(["network", f"tcp://127.0.0.1:{port}", "--start", command, *arguments])


def test_a_sound_server_passes_and_the_report_goes_to_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = tmp_path / "r.json", tmp_path / "r.xml"
    asked = ["--rule", "N.14", "--rule", "N.37", "--rule", "wire20_answers_once"]
    assert judged(*asked, "--json", str(files[0]), "--junit", str(files[1])) == 0
    told = capsys.readouterr().out
    assert re.search(r"^N\.14 +MUST +pass +3$", told, re.M)
    assert re.search(r"^N\.37 +MUST +not judged .* there is no WebSocket$", told, re.M)
    assert "4 laws run in" in told
    report = json.loads(files[0].read_text("utf-8"))
    assert (report["ok"], report["counts"]["pass"]) == (True, 4)
    assert report["server"].startswith("tcp://")
    assert [each["rule"] for each in report["rules"]] == ["N.14", "N.20", "N.37"]
    cases = {case.attrib["name"] for case in ElementTree.parse(files[1]).iter("testcase")}
    assert f"{LAW}-MUST" in cases


def test_a_broken_rule_is_explained_with_all_that_was_said(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert judged("--rule", LAW, "--timeout", "2", flaws=("sends one too many",)) == 1
    told = capsys.readouterr().out
    for part in (
        f"{LAW} [server, MUST]: FAIL",
        "rule N.14: 1 were requested in all, 2 came",
        "rule N.14 MUST: No more elements are sent than have been requested.",
        "-> REQUEST_STREAM stream 1 n=1 metadata",
        "<- PAYLOAD stream 1 NEXT '0'",
        "<-- N.14: 1 were requested in all, 2 came",
        "rules broken, of strength MUST: N.14",
    ):
        assert part in told, told


def test_what_should_be_is_an_error_only_for_the_strict() -> None:
    asked = ("--rule", "wire10_refuses_what_is_no_frame", "--timeout", "0.3")
    assert judged(*asked, flaws=("passes over what is no frame",)) == 0
    assert judged(*asked, "--strict", flaws=("passes over what is no frame",)) == 1


def test_a_server_that_dies_is_started_again_for_the_next_law(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert judged("--rule", "N.2", "--rule", "N.6", flaws=("dies of nonsense",)) == 1
    told = capsys.readouterr().out
    assert re.search(r"^N\.6 +MUST +pass", told, re.M)
    assert "it ended with status 3" in " ".join(told.split())


def test_the_laws_are_listed_and_what_they_need(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["network", "--laws"]) == 0
    told = capsys.readouterr().out
    for name in (*WIRE_LAWS, *OFFERS, *WIRE_RULES):
        assert name in told


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "write an address, like tcp://"),
        (["http://localhost"], "write one of tcp://"),
        (["tcp://localhost"], "write tcp://host:port"),
        (["unix://socket"], "write unix:///path"),
        (["tcp://127.0.0.1:1", "--rule", "N.99"], "no rule or law 'N.99'"),
        (["tcp://127.0.0.1:1", "--offer", "echo"], "write --offer echo=ROUTE"),
        (["tcp://127.0.0.1:1", "--offer", "what=x"], "there is no what to offer"),
        (["tcp://127.0.0.1:1", "--json", "missing/folder/file"], "there is no folder"),
        (["tcp://127.0.0.1:1", "--ca", "missing.pem"], "cannot be read as certificates"),
        (["tcp://127.0.0.1:1"], "nobody can be judged at tcp://127.0.0.1:1: no connection"),
        (["tcp://127.0.0.1:1", "--start", "no-such-program"], "cannot be started"),
    ],
)
def test_a_wrong_call_is_told_in_one_line(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["network", *arguments]) == 2
    told = capsys.readouterr().err
    assert why in told
    assert told.count("\n") == 1
