"""The command says what it found, and in its exit status; a subject cannot take it along."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
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
NEXT: Final = "spec109_refuses_no_subscriber"
QUICK: Final = ("--timeout", "0.3", "--stuck", "0.5", "--longest", "2")


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str


def started(*arguments: str, folder: Path = ROOT, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "reactive_aio.tck", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def command(*arguments: str, folder: Path = ROOT, **variables: str) -> Ended:
    with started(*arguments, folder=folder, **variables) as process:
        out, err = process.communicate(timeout=50)
    return Ended(process.returncode, out, err)


def check(subject: str, *options: str) -> Ended:
    return command("check", f"tests.tck.unruly:{subject}", *options)


def verdicts(subject: str, folder: Path, *options: str) -> list[dict[str, Any]]:
    file = folder / "report.json"
    ended = check(subject, "--json", str(file), *QUICK, *options)
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

    def test_they_are_told_as_data(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["rules", "--json"]) == 0
        listed = json.loads(capsys.readouterr().out)
        assert {each["rule"] for each in listed} >= RULES.keys()
        laws = {law["name"] for each in listed for law in each["laws"]}
        assert laws == {law.name for law in LAWS.values() if law.rule != "setup"}
        for each in listed:
            if each["rule"][0] in "13":  # what a publisher is bound by
                assert each["laws"] or each["not judged"], each["rule"]

    def test_a_reader_that_has_seen_enough_is_no_error(self) -> None:
        with started("rules", "--json") as process:
            assert process.stdout is not None
            process.stdout.close()
            assert process.stderr is not None
            assert process.stderr.read() == ""
        assert process.returncode == 0


# -- what comes of a check -------------------------------------------------------------------------
def test_a_sound_subject_passes() -> None:
    ended = check("good", "--rule", "1.9", "--rule", "1.1")
    assert ended.status == 0
    assert ended.err == ""
    assert re.search(r"^1\.9 +MUST +pass ", ended.out, re.MULTILINE)
    assert re.search(r"^three at most: \d+ laws run in .* 0 FAIL", ended.out, re.MULTILINE)


def test_a_law_can_be_named() -> None:
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


def test_a_broken_should_is_told_and_is_an_error_only_for_the_strict() -> None:
    law = "spec304_request_returns_quickly"
    ended = check("slow", "--rule", law, "--held-up", "0.1")
    assert (ended.status, "rules broken, of strength SHOULD: 3.4" in ended.out) == (0, True)
    assert check("slow", "--rule", law, "--held-up", "0.1", "--strict").status == 1


def test_it_is_no_success_when_nothing_was_judged() -> None:
    ended = check("good", "--rule", "1.4")
    assert ended.status == 1
    assert "nothing was judged" in ended.out


def test_rules_that_no_law_was_about_are_told_with_the_reason() -> None:
    ended = check("good")
    assert ended.status == 0
    assert re.search(r"^- not judged: .*\b2\.2\b.* \(the subject has no ", ended.out, re.MULTILINE)


def test_the_report_goes_to_files(tmp_path: Path) -> None:
    json_file, xml_file = tmp_path / "r.json", tmp_path / "r.xml"
    check("fails", "--rule", "1.9", "--json", str(json_file), "--junit", str(xml_file))
    report = json.loads(json_file.read_text("utf-8"))
    assert report["ok"] is False
    assert report["factory"] == "tests.tck.unruly:fails"
    assert report["rules"][0]["outcome"] == "FAIL"
    cases = list(ElementTree.parse(xml_file).iter("testcase"))
    assert len(cases) == len(report["verdicts"])
    failed = [case for case in cases if case.find("failure") is not None]
    assert len(failed) == report["counts"]["FAIL"]
    assert f"{LAW}-MUST" in {case.attrib["name"] for case in failed}


def test_it_can_be_repeated(tmp_path: Path) -> None:
    assert len(verdicts("good", tmp_path, "--rule", LAW, "--repeat", "3")) == 3


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


def test_the_example_of_the_documents_is_true(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "conformance.md").read_text("utf-8")
    code, call, shown = re.findall(r"^```(?:\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[:3]
    (tmp_path / "mine.py").write_text(code, "utf-8")
    assert call.startswith("$ python -m reactive_aio.tck ")
    ended = command(*call.split()[4:], folder=tmp_path)
    assert ended.status == 1
    assert ended.out.startswith(shown.removesuffix("…\n"))


# -- wrong calls -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("tests.tck.unruly", "write package.module:factory"),
        ("tests/tck/unruly.py:good", "write tests.tck.unruly:good"),
        ("tests.tck.missing:good", "no module 'tests.tck.missing'"),
        ("tests.tck.unruly:missing", "has no 'missing'"),
        ("tests.tck.unruly:no_subject", "must return a reactive_aio.tck.Subject"),
        ("tests.tck.unruly:raises", "raised ZeroDivisionError('no subject') at "),
        ("tests.tck.unruly:exits", "raised SystemExit('I am a script') at "),
        ("tests.tck.unruly:leave_the_process", "missing 1 required positional argument"),
    ],
)
def test_a_bad_factory_is_told_in_one_line(where: str, why: str) -> None:
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
def test_a_bad_option_is_told_in_one_line(
    arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "tests.tck.unruly:good", *arguments]) == 2
    told = capsys.readouterr().err
    assert why in told
    assert told.count("\n") == 1


def test_a_factory_that_hangs_is_given_up() -> None:
    ended = check("hangs", *QUICK, "--longest", "0.5")
    assert ended.status == 2
    assert "gave no subject: there was no end after 1.5 s" in ended.err
    assert "in hangs" in ended.err
    assert "waiting for a subject" in ended.err


def test_the_current_folder_is_searched(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from tests.tck.unruly import good\n", "utf-8")
    ended = command("check", "mine:good", "--rule", LAW, folder=tmp_path)
    assert (ended.status, ended.err) == (0, "")


# -- subjects that would take the command along ----------------------------------------------------
@pytest.mark.parametrize(
    ("subject", "why", "part", "text"),
    [
        ("leaves", "its process ended itself with exit status 3", "output", "about to leave"),
        ("crashes", "its process died of the signal SIGSEGV", "stack", "in crash"),
        ("keeps", "the interpreter did not run for", "stack", "in keep_the_interpreter"),
    ],
)
def test_a_subject_that_ends_its_process_has_its_verdict_and_the_next_law_is_judged(
    subject: str, why: str, part: str, text: str, tmp_path: Path
) -> None:
    first, second = verdicts(subject, tmp_path, "--rule", LAW, "--rule", NEXT)
    for verdict in (first, second):
        assert (verdict["outcome"], verdict["strength"]) == ("FAIL", "must")
        assert why in verdict["why"]
        assert text in verdict[part]


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is the operating system's")
def test_memory_can_be_limited(tmp_path: Path) -> None:
    [verdict] = verdicts("eats", tmp_path, "--rule", LAW, "--memory", "1024")
    assert "MemoryError" in verdict["why"]


def test_after_a_subject_that_cannot_be_stopped_the_next_law_has_a_new_process(
    tmp_path: Path,
) -> None:
    first, second = verdicts("sleeps", tmp_path, "--rule", LAW, "--rule", NEXT)
    assert "cannot be stopped" in first["why"]
    processes = {verdict["output"] for verdict in (first, second)}
    assert len(processes) == 2
    assert all(re.match(r"under way in \d+", output) for output in processes)


def test_what_a_subject_prints_disturbs_nothing() -> None:
    ended = check("prints", "--rule", LAW)
    assert (ended.status, ended.err) == (0, "")
    assert "{}{}" not in ended.out


def test_the_subject_runs_with_the_options_of_the_command() -> None:
    options = ["-O", "-X", "dev", "-W", "error::UserWarning"]
    arguments = ["check", "tests.tck.unruly:tells_its_options", "--rule", LAW, "--show-output"]
    process = subprocess.run(
        [sys.executable, *options, "-m", "reactive_aio.tck", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert "optimize=1 dev_mode=True error::UserWarning" in process.stderr, process.stderr


def test_what_a_subject_prints_can_be_seen() -> None:
    ended = check("leaves", "--rule", LAW, "--show-output")
    assert "about to leave" in ended.err


def test_ctrl_c_ends_it_at_once() -> None:
    place = "tests.tck.unruly:sleeps"
    with started("check", place, "--rule", LAW, "--show-output") as process:
        assert process.stderr is not None
        assert "under way" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    assert (process.returncode, out) == (130, "")
    assert "stopped by Ctrl-C after 0 laws" in err
