"""The verdicts of the network kit on other servers: known faults and conformance."""

import socket
import sys
from typing import Final

import pytest

from reactive_aio.tck import Report, Timeouts
from reactive_aio.tck.network.judge import check_server
from reactive_aio.tck.network.server import ServerProfile
from tests.interop.node import PEERS
from tests.node.packages import Packages

pytestmark = pytest.mark.slow

TIMEOUTS: Final = Timeouts(response=3.0, reduced_response=1.0, quiet_period=0.03)
PROFILE: Final = ServerProfile(rejected_user=("me", "wrong"))


def free_port() -> int:
    with socket.socket() as any_:
        any_.bind(("127.0.0.1", 0))
        port: int = any_.getsockname()[1]
        return port


def judged(port: int, command: list[str], *laws: str) -> Report:
    uri = f"tcp://127.0.0.1:{port}"
    return check_server(uri, PROFILE, rules=laws, timeouts=TIMEOUTS, start=command)


def broken(report: Report) -> dict[str, str]:
    """For each broken rule, the report of the first law that fails."""
    found: dict[str, str] = {}
    for verdict in report:
        if verdict.fails:
            found.setdefault(verdict.broken, verdict.why)
    return found


PYPI: Final = {
    "wire1_serves_nothing_before_setup": "a request was served",
    "wire3_rejects_wrong_credentials_and_serves_nothing": "a request was served",
    "wire21_answers_an_empty_payload_with_an_element": "was answered by []",
    "wire29_serves_a_request_while_another_waits": "another is not served",
    "wire31_carries_payloads_longer_than_a_frame": "1048576 bytes came back",
    "wire39_carries_the_initial_request": "the wire says REQUEST_N",
    "wire39_opens_a_stream_for_each_subscription": "on the streams [2, 2]",
    "wire41_sends_no_non_positive_request": "did not continue",
    "wire42_sends_cancel_once_and_then_nothing": "came after CANCEL",
    "wire43_forwards_errors_with_their_codes": "should be '0 0 error",
}


@pytest.mark.thorough
def test_the_known_faults_of_rsocket_py_are_found() -> None:
    """Missing SETUP, credentials, 16 MiB, demand, errors: see decision 0028."""
    port = free_port()
    command = [sys.executable, "-m", "tests.interop.pypi_server", str(port)]
    report = judged(port, command, *PYPI)
    told = {verdict.law: verdict.why for verdict in report if verdict.fails}
    for law, words in PYPI.items():
        assert words in told.get(law, "it passed"), (law, told.get(law))


@pytest.mark.thorough
@pytest.mark.parametrize(("line", "dies"), [("alpha", True), ("legacy", False)])
def test_rsocket_js_honors_demand_and_fails_on_malformed_frames(
    line: str, dies: bool, rsocket_js: Packages, rsocket_js_legacy: Packages,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    packages, port = rsocket_js if line == "alpha" else rsocket_js_legacy, free_port()
    monkeypatch.setenv("NODE_PATH", str(packages.modules))
    monkeypatch.setenv("TCP_PORT", str(port))
    command = [packages.node, str(PEERS / f"{line}.js")]
    cut_short = "wire2_rejects_a_truncated_setup"
    rules = (cut_short, "N.14", "N.15", "N.16", "N.20", "N.21", "N.38", "N.44")
    report = judged(port, command, *rules)
    # 15 bytes of one client end the process and the connections of all others.
    assert report[cut_short].broken == ("N.13" if dies else "N.2"), str(report[cut_short])
    kept = {"N.14", "N.15", "N.16", "N.20", "N.21", "N.38"}
    assert not kept & broken(report).keys(), str(report)
    assert "it has not cancelled" in broken(report)["N.44"]
