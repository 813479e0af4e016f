"""The command: its output and exit status, also for candidates that end their process."""

import json
import re
import signal
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest

from reactive_aio.tck import LAWS, RULES
from reactive_aio.tck.command import main
from tests.harness.loops import HAS_UVLOOP

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parents[2]
LAW: Final = "spec109_subscribes_first"
NEXT: Final = "spec109_rejects_none_as_subscriber"
QUICK: Final = ("--timeout", "0.3", "--stall", "1", "--law-timeout", "2")


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str


def started(*arguments: str, folder: Path = ROOT) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "reactive_aio.tck", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the processes of candidates inherit."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("COLUMNS", "100")


def command(*arguments: str) -> Ended:
    """Run the command here; it judges candidates in a process of their own."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as err:
        status = main(arguments)
    return Ended(status, out.getvalue(), err.getvalue())


def command_in(folder: Path, *arguments: str) -> Ended:
    """Run the command as a program, in *folder*."""
    with started(*arguments, folder=folder) as process:
        out, err = process.communicate(timeout=50)
    return Ended(process.returncode, out, err)


def check(candidate: str, *options: str) -> Ended:
    return command("check", f"tests.tck.hostile_candidates:{candidate}", *options)


def verdicts(candidate: str, folder: Path, *options: str) -> list[dict[str, Any]]:
    file = folder / "report.json"
    ended = check(candidate, "--json", str(file), *QUICK, *options)
    assert file.exists(), ended.err
    found: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))["verdicts"]
    return found


# -- rules -----------------------------------------------------------------------------------------
class TestRules:
    def test_all_43_are_listed_with_strength_and_laws(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["rules"]) == 0
        lines = capsys.readouterr().out.splitlines()
        for rule in RULES.values():
            assert any(
                re.match(rf"{re.escape(rule.number)} +{rule.strength.name} ", line)
                for line in lines
            )
        assert f"· {LAW} (MUST)" in "".join(lines)
        assert not any("\x1b" in line for line in lines)
        assert max(map(len, lines)) <= 100

    def test_they_are_listed_as_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["rules", "--json"]) == 0
        listed = json.loads(capsys.readouterr().out)
        assert {each["rule"] for each in listed} >= RULES.keys()
        laws = {law["name"] for each in listed for law in each["laws"]}
        assert laws == {law.name for law in LAWS.values() if law.rule != "setup"}
        for each in listed:
            if each["rule"][0] in "13":  # the rules of publishers
                assert each["laws"] or each["not judged"], each["rule"]

    def test_a_closed_output_pipe_is_not_an_error(self) -> None:
        with started("rules", "--json") as process:
            assert process.stdout is not None
            process.stdout.close()
            assert process.stderr is not None
            assert process.stderr.read() == ""
        assert process.returncode == 0


# -- the outcome of a check ------------------------------------------------------------------------
def test_a_conforming_candidate_passes() -> None:
    ended = check("good", "--rule", "1.9", "--rule", "1.1")
    assert ended.status == 0
    assert ended.err == ""
    assert re.search(r"^1\.9 +MUST +pass ", ended.out, re.MULTILINE)
    assert re.search(r"^three at most: \d+ laws run in .* 0 FAIL", ended.out, re.MULTILINE)


def test_a_law_can_be_selected_by_name() -> None:
    ended = check("good", "--rule", LAW)
    assert "three at most: 1 law run" in ended.out


def test_a_broken_must_is_explained_and_exits_with_1() -> None:
    ended = check("fails", "--rule", LAW, "--rule", "1.5")
    assert ended.status == 1
    for part in (
        f"{LAW} [publisher, MUST]: FAIL",
        "rule 1.9: subscribe() raised ValueError('not today')",
        "rule 1.9 MUST: subscribe() sends on_subscribe first",
        "demand   >",
        "^-- 1.9: subscribe() raised",
        "0.000  subscribe()",
        "rules broken, of strength MUST: 1.9",
    ):
        assert part in ended.out
    assert re.search(
        r"^1\.5 +MUST +not judged .* its (2 laws|law) failed on rule 1\.9", ended.out, re.M
    )


def test_a_broken_should_is_reported_and_is_an_error_only_with_strict() -> None:
    law = "spec304_request_returns_quickly"
    ended = check("slow", "--rule", law, "--max-block", "0.1")
    assert (ended.status, "rules broken, of strength SHOULD: 3.4" in ended.out) == (0, True)
    assert check("slow", "--rule", law, "--max-block", "0.1", "--strict").status == 1


def test_a_check_that_judges_nothing_fails() -> None:
    ended = check("good", "--rule", "1.4")
    assert ended.status == 1
    assert "nothing was judged" in ended.out


def test_rules_that_no_law_judged_are_listed_with_the_reason() -> None:
    ended = check("good")
    assert ended.status == 0
    assert re.search(
        r"^- not judged: .*\b2\.2\b.* \(the candidate has no ", ended.out, re.MULTILINE
    )


def test_the_report_is_written_to_files(tmp_path: Path) -> None:
    json_file, xml_file = tmp_path / "r.json", tmp_path / "r.xml"
    check("fails", "--rule", "1.9", "--json", str(json_file), "--junit", str(xml_file))
    report = json.loads(json_file.read_text("utf-8"))
    assert report["ok"] is False
    assert report["factory"] == "tests.tck.hostile_candidates:fails"
    assert report["rules"][0]["outcome"] == "FAIL"
    cases = list(ElementTree.parse(xml_file).iter("testcase"))
    assert len(cases) == len(report["verdicts"])
    failed = [case for case in cases if case.find("failure") is not None]
    assert len(failed) == report["counts"]["FAIL"]
    assert f"{LAW}-MUST" in {case.attrib["name"] for case in failed}


def test_a_check_can_be_repeated(tmp_path: Path) -> None:
    assert len(verdicts("good", tmp_path, "--rule", LAW, "--repeat", "3")) == 3


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("loop", "kind"),
    [
        ("asyncio", "_UnixSelectorEventLoop|ProactorEventLoop"),
        ("debug", "_UnixSelectorEventLoop|ProactorEventLoop"),
        ("virtual", "VirtualTimeLoop"),
        pytest.param("uvloop", "Loop", marks=[] if HAS_UVLOOP else pytest.mark.skip("no uvloop")),
    ],
)
def test_the_loop_can_be_chosen(loop: str, kind: str, tmp_path: Path) -> None:
    [verdict] = verdicts("names", tmp_path, "--rule", LAW, "--loop", loop)
    assert re.search(rf"ValueError\('on ({kind})'\)", verdict["why"])


def test_the_example_of_the_documentation_is_accurate(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "conformance.md").read_text("utf-8")
    code, call, shown = re.findall(r"^```(?:\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[:3]
    (tmp_path / "mine.py").write_text(code, "utf-8")
    assert call.startswith("$ python -m reactive_aio.tck ")
    ended = command_in(tmp_path, *call.split()[4:])
    assert ended.status == 1
    assert ended.out.startswith(shown.removesuffix("…\n"))


# -- wrong command lines ---------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("tests.tck.hostile_candidates", "write package.module:factory"),
        ("tests/tck/hostile_candidates.py:good", "write tests.tck.hostile_candidates:good"),
        ("tests.tck.missing:good", "no module 'tests.tck.missing'"),
        ("tests.tck.hostile_candidates:missing", "has no 'missing'"),
        (
            "tests.tck.hostile_candidates:not_a_candidate",
            "must return a reactive_aio.tck.Candidate",
        ),
        ("tests.tck.hostile_candidates:raises", "raised ZeroDivisionError('no candidate') at "),
        ("tests.tck.hostile_candidates:exits", "raised SystemExit('I am a script') at "),
        (
            "tests.tck.hostile_candidates:leave_the_process",
            "missing 1 required positional argument",
        ),
    ],
)
def test_an_invalid_factory_is_reported_in_one_line(where: str, why: str) -> None:
    ended = command("check", where)
    assert (ended.status, ended.out) == (2, "")
    assert why in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--rule", "1.99"], "no rule or law '1.99'"),
        (["--rule", "spec109_subscribes_frist"], f"did you mean {LAW}"),
        (["--json", "missing/folder/file"], "there is no folder missing/folder"),
    ],
)
def test_an_invalid_option_is_reported_in_one_line(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "tests.tck.hostile_candidates:good", *arguments]) == 2
    output = capsys.readouterr().err
    assert why in output
    assert output.count("\n") == 1


def test_a_factory_that_hangs_is_stopped() -> None:
    where = "tests.tck.hanging_factory:hangs"
    ended = command("check", where, *QUICK, "--law-timeout", "0.5")
    assert ended.status == 2
    assert "gave no candidate: there was no end after 1.5 s" in ended.err
    assert "in hangs" in ended.err
    assert "waiting for a candidate" in ended.err


@pytest.mark.thorough
def test_the_current_folder_is_searched(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from tests.tck.hostile_candidates import good\n", "utf-8")
    ended = command_in(tmp_path, "check", "mine:good", "--rule", LAW)
    assert (ended.status, ended.err) == (0, "")


# -- candidates that end their process -------------------------------------------------------------
@pytest.mark.thorough
@pytest.mark.parametrize(
    ("candidate", "why", "part", "text"),
    [
        ("leaves", "its process exited with status 3", "output", "about to leave"),
        ("crashes", "its process died of the signal SIGSEGV", "stack", "in crash"),
        ("keeps", "the interpreter did not run for", "stack", "in keep_the_interpreter"),
    ],
)
def test_a_candidate_that_ends_its_process_gets_a_verdict_and_the_next_law_runs(
    candidate: str, why: str, part: str, text: str, tmp_path: Path
) -> None:
    first, second = verdicts(candidate, tmp_path, "--rule", LAW, "--rule", NEXT)
    for verdict in (first, second):
        assert (verdict["outcome"], verdict["strength"]) == ("FAIL", "must")
        assert why in verdict["why"]
        assert text in verdict[part]


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is the operating system's")
def test_memory_can_be_limited(tmp_path: Path) -> None:
    [verdict] = verdicts("eats", tmp_path, "--rule", LAW, "--memory", "1024")
    assert "MemoryError" in verdict["why"]


@pytest.mark.thorough
def test_after_a_candidate_that_cannot_be_stopped_the_next_law_runs_in_a_new_process(
    tmp_path: Path,
) -> None:
    first, second = verdicts("sleeps", tmp_path, "--rule", LAW, "--rule", NEXT)
    assert "cannot be stopped" in first["why"]
    processes = {verdict["output"] for verdict in (first, second)}
    assert len(processes) == 2
    assert all(re.match(r"under way in \d+", output) for output in processes)


def test_output_of_a_candidate_does_not_disturb_the_report() -> None:
    ended = check("prints", "--rule", LAW)
    assert (ended.status, ended.err) == (0, "")
    assert "{}{}" not in ended.out


@pytest.mark.thorough
def test_the_candidate_runs_with_the_interpreter_options_of_the_command() -> None:
    options = ["-O", "-X", "dev", "-W", "error::UserWarning"]
    arguments = [
        "check",
        "tests.tck.hostile_candidates:prints_its_options",
        "--rule",
        LAW,
        "--show-output",
    ]
    process = subprocess.run(
        [sys.executable, *options, "-m", "reactive_aio.tck", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert "optimize=1 dev_mode=True error::UserWarning" in process.stderr, process.stderr


@pytest.mark.thorough
def test_output_of_a_candidate_can_be_shown() -> None:
    where = "tests.tck.hostile_candidates:leaves"
    ended = command_in(ROOT, "check", where, "--rule", LAW, "--show-output")
    assert "about to leave" in ended.err


def test_ctrl_c_stops_the_command() -> None:
    place = "tests.tck.hostile_candidates:sleeps"
    with started("check", place, "--rule", LAW, "--show-output") as process:
        assert process.stderr is not None
        assert "under way" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    assert (process.returncode, out) == (130, "")
    assert "stopped by Ctrl-C after 0 laws" in err
