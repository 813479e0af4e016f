"""``python -m reactive_aio.tck network``: its output, files and exit status."""

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
from reactive_aio.tck.network.server import ROUTES
from reactive_aio.tck.rules import WIRE_RULES

pytestmark = pytest.mark.slow

LAW: Final = "wire14_sends_one_for_one"


def free_port() -> int:
    with socket.socket() as any_:
        any_.bind(("127.0.0.1", 0))
        port: int = any_.getsockname()[1]
        return port


def judged(*arguments: str, flaws: tuple[str, ...] = ()) -> int:
    """The exit status for a server that the kit starts itself."""
    port = free_port()
    command = f"{sys.executable} -m tests.tck.flawed_server {port} " + " ".join(
        f"'{f}'" for f in flaws
    )
    return main(["network", f"tcp://127.0.0.1:{port}", "--start", command, *arguments])


def test_a_conforming_server_passes_and_the_report_is_written_to_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = tmp_path / "r.json", tmp_path / "r.xml"
    options = ["--rule", "N.14", "--rule", "N.37", "--rule", "wire20_answers_once"]
    assert judged(*options, "--json", str(files[0]), "--junit", str(files[1])) == 0
    output = capsys.readouterr().out
    assert re.search(r"^N\.14 +MUST +pass +3$", output, re.M)
    assert re.search(r"^N\.37 +MUST +not judged .* the transport is not a WebSocket$", output, re.M)
    assert "4 laws run in" in output
    report = json.loads(files[0].read_text("utf-8"))
    assert (report["ok"], report["counts"]["pass"]) == (True, 4)
    assert report["server"].startswith("tcp://")
    assert [each["rule"] for each in report["rules"]] == ["N.14", "N.20", "N.37"]
    cases = {case.attrib["name"] for case in ElementTree.parse(files[1]).iter("testcase")}
    assert f"{LAW}-MUST" in cases


def test_a_broken_rule_is_explained_with_all_frames(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert judged("--rule", LAW, "--timeout", "2", flaws=("sends one too many",)) == 1
    output = capsys.readouterr().out
    for part in (
        f"{LAW} [server, MUST]: FAIL",
        "rule N.14: 1 were requested in all, 2 came",
        "rule N.14 MUST: No more elements are sent than have been requested.",
        "-> REQUEST_STREAM stream 1 n=1 metadata",
        "<- PAYLOAD stream 1 NEXT '0'",
        "<-- N.14: 1 were requested in all, 2 came",
        "rules broken, of strength MUST: N.14",
    ):
        assert part in output, output


def test_a_broken_should_is_an_error_only_with_strict() -> None:
    options = ("--rule", "wire10_rejects_malformed_frames", "--timeout", "0.3")
    assert judged(*options, flaws=("ignores malformed frames",)) == 0
    assert judged(*options, "--strict", flaws=("ignores malformed frames",)) == 1


def test_a_server_that_crashes_is_restarted_for_the_next_law(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert judged("--rule", "N.2", "--rule", "N.6", flaws=("crashes on a truncated SETUP",)) == 1
    output = capsys.readouterr().out
    assert re.search(r"^N\.6 +MUST +pass", output, re.M)
    assert "it ended with status 3" in " ".join(output.split())


def test_the_laws_and_the_routes_they_need_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["network", "--laws"]) == 0
    output = capsys.readouterr().out
    for name in (*WIRE_LAWS, *ROUTES, *WIRE_RULES):
        assert name in output


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "write an address, like tcp://"),
        (["http://localhost"], "write one of tcp://"),
        (["tcp://localhost"], "write tcp://host:port"),
        (["unix://socket"], "write unix:///path"),
        (["tcp://127.0.0.1:1", "--rule", "N.99"], "no rule or law 'N.99'"),
        (["tcp://127.0.0.1:1", "--route", "echo"], "write --route echo=ROUTE"),
        (["tcp://127.0.0.1:1", "--route", "what=x"], "unknown route what"),
        (["tcp://127.0.0.1:1", "--json", "missing/folder/file"], "there is no folder"),
        (["tcp://127.0.0.1:1", "--ca", "missing.pem"], "cannot be read as certificates"),
        (["tcp://127.0.0.1:1"], "there is no server to judge at tcp://127.0.0.1:1: no connection"),
        (["tcp://127.0.0.1:1", "--start", "no-such-program"], "cannot be started"),
    ],
)
def test_a_wrong_command_line_is_reported_in_one_line(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["network", *arguments]) == 2
    output = capsys.readouterr().err
    assert why in output
    assert output.count("\n") == 1
