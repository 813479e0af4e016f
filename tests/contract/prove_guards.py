"""Remove each guard of the contract of signals once, and find the test that fails.

    python -m tests.contract.prove_guards            # all of them, into docs/guards.md
    python -m tests.contract.prove_guards depth 3.9  # those whose name contains a word; prints only

It works on a copy of the tree. A guard whose text is not found exactly once has moved, and this
table must be updated. Since it runs the tests once per guard, the session `thorough` runs it.
"""

import re
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]
TABLE: Final = ROOT / "docs" / "guards.md"
TESTS: Final = (  # the quick ones first, and one loop will do
    "tests/core/test_demand.py",
    "tests/core/test_input_queue.py",
    "tests/core/test_lifecycle.py",
    "tests/core/test_trampoline.py",
    "tests/core/test_serial_executor.py",
    "tests/contract",
    "tests/model",
)

SECONDS: Final = 240
"""For one run of them."""
BYTES: Final = 4 << 30


class Guard(NamedTuple):
    """One guard and how it is taken away."""

    name: str
    file: str
    text: str
    without: str


CORE: Final = "reactive_aio/_core/"
ISLAND: Final = CORE + "subscription/island.py"
SYNC_ISLAND: Final = CORE + "subscription/sync_island.py"
TASK_ISLAND: Final = CORE + "subscription/task_island.py"
INNER: Final = CORE + "upstreams/inner_subscriber.py"
LOOPS: Final = CORE + "compiler/loops.py"
INPUT: Final = CORE + "subscription/input_queue.py"

GUARDS: Final = (
    # -- demand
    Guard(
        "1.1 an island delivers no more than its limit",
        LOOPS,
        '"if emitted >= S.limit:", *_indent(1, [*self._wait(), enough])',
        '"if emitted >= S.limit:", *_indent(1, [enough])',
    ),
    Guard(
        "1.1 an input queue accepts no more than it requested",
        INPUT,
        "if self.outstanding < 0:",
        "if False:",
    ),
    Guard(
        "1.1 an inner subscriber accepts no more than it requested",
        INNER,
        "len(self.elements) < self.outstanding and",
        "True and",
    ),
    Guard(
        "1.1 a batch that is not counted fits into the demand",
        LOOPS,
        "size = batch if counted or batch < room else room - 1",
        "size = batch",
    ),
    Guard("3.8 requests add up", ISLAND, "self.limit += n", "self.limit = n"),
    Guard(
        "3.8 the check after the drain has paused",
        ISLAND,
        "            if self._is_ready():\n                self._enter(_WAKE)",
        "            pass",
    ),
    Guard(
        "3.8 the check after a synchronous drain has paused",
        SYNC_ISLAND,
        "        if not self._is_ready():\n            return False\n",
        "        return False\n",
    ),
    Guard(
        "3.13 a generator is closed before its flow is completed",
        SYNC_ISLAND,
        "            and not isinstance(source, CLOSABLE)\n",
        "",
    ),
    Guard(
        "3.13 upstream is released before a flow is completed",
        SYNC_ISLAND,
        "            and self.input_queue is None\n",
        "",
    ),
    Guard(
        "discards: a source receives the function that its elements are given back to",
        SYNC_ISLAND,
        "            or self.discards is not None\n",
        "",
    ),
    Guard(
        "3.8 the check after a resumed drain has paused",
        SYNC_ISLAND,
        "not self.is_stopped and self.limit <= self.emitted:",
        "not self.is_stopped:",
    ),
    Guard(
        "3.8 what is requested while an element is processed",
        SYNC_ISLAND,
        "and self.limit is self.requested_limit",
        "and True",
    ),
    Guard(
        "3.8 what a stage drops is requested again",
        SYNC_ISLAND,
        "queue.outstanding >= self.needed_from_upstream",
        "True",
    ),
    Guard(
        "3.8 demand that arrives during the request to upstream",
        ISLAND,
        "return bool(has_news) or self.limit != self.requested_limit",
        "return bool(has_news)",
    ),
    Guard("3.9 a request is checked", ISLAND, "if n.__class__ is not int or n < 1:", "if False:"),
    Guard(
        "3.9 it is answered once, and not after a cancellation",
        ISLAND,
        "    def _fail(self, error: BaseException) -> None:\n        if not self.is_stopped:",
        "    def _fail(self, error: BaseException) -> None:\n        if True:",
    ),
    Guard(
        "3.9 the answer waits for the current signal",
        SYNC_ISLAND,
        "if self.is_suspended and not self.is_fault:",
        "if self.is_suspended:",
    ),
    Guard(
        "3.9 a bool is not a number of elements", CORE + "demand.py", "isinstance(n, bool) or ", ""
    ),
    Guard(
        "3.17 demand saturates",
        CORE + "demand.py",
        "self.outstanding = min(self.outstanding + n, UNBOUNDED)",
        "self.outstanding += n",
    ),
    # -- one signal at a time
    Guard(
        "1.3 the awaitable that on_next returned is awaited",
        LOOPS,
        "if r is not None and S.must_await(r): yield AWAIT_SIGNAL",
        "pass",
    ),
    Guard("1.3 the same in a task", LOOPS, "if r is not None: await S.await_signal(r)", "pass"),
    Guard(
        "1.3 the awaitable that on_subscribe returned is awaited",
        ISLAND,
        "        if signalled is not None and self.must_await(signalled):\n"
        '            self._await_in_task("on_subscribe", self._on_subscribed)\n        else:\n'
        "            self._on_subscribed()",
        "        self._on_subscribed()",
    ),
    Guard(
        "1.3 no signal before on_subscribe has returned",
        CORE + "subscription/lifecycle.py",
        "(P.OPENING, Input.WAKE): (P.OPENING, A.NOTHING)",
        "(P.OPENING, Input.WAKE): (P.DRAINING, A.DRAIN)",
    ),
    Guard(
        "3.3 a request while draining is an addition",
        CORE + "subscription/lifecycle.py",
        "(P.DRAINING, Input.WAKE): (P.DRAINING, A.NOTHING)",
        "(P.DRAINING, Input.WAKE): (P.DRAINING, A.DRAIN)",
    ),
    Guard(
        "3.3 a request wakes an idle flow only",
        ISLAND,
        "        self.limit += n\n        if self.phase is _IDLE:\n"
        "            loop_handle = self.loop_handle\n",
        "        self.limit += n\n        if True:\n            loop_handle = self.loop_handle\n",
    ),
    Guard(
        "3.3 deep chains do not exhaust the stack",
        CORE + "loop.py",
        "_DEEPEST: Final = 24",
        "_DEEPEST: Final = 10**9",
    ),
    Guard(
        "1.3 the trampoline has one worker",
        CORE + "trampoline.py",
        "            if self.state is ExecutorState.RUNNING:\n                return False\n",
        "",
    ),
    # -- the end
    Guard(
        "1.7 one terminal signal",
        CORE + "subscription/lifecycle.py",
        "(P.CLOSED, A.NOTHING) for happened",
        "(P.CLOSED, A.TERMINATE) for happened",
    ),
    Guard(
        "1.4 an error of upstream passes through the loop unchanged",
        INPUT,
        "raise UpstreamFailed(self._error)",
        "raise self._error",
    ),
    Guard(
        "1.4 an exception that cannot be annotated",
        CORE + "compiler/error_notes.py",
        "with suppress(Exception):  # an exception may be frozen, and",
        "if True:  #",
    ),
    Guard(
        "1.5 a stage that still emits for its element",
        LOOPS,
        "S.emitted = emitted\\n    yield MID_ELEMENT",
        "S.emitted = emitted\\n    if S.is_source_spent(): raise Done\\n    yield NO_DEMAND",
    ),
    Guard(
        "1.5 the same in a task",
        TASK_ISLAND,
        "not within and self.is_source_spent()",
        "self.is_source_spent()",
    ),
    Guard(
        "1.4 None is not an element",
        LOOPS,
        'return [] if self.shape.checked else ["if x',
        'return [] if True else ["if x',
    ),
    # -- cancellation
    Guard(
        "1.8 the flag after each delivery",
        LOOPS,
        "if r is not None and S.must_await(r): yield AWAIT_SIGNAL\n{_ALIVE}",
        "if r is not None and S.must_await(r): yield AWAIT_SIGNAL",
    ),
    Guard(
        "1.8 a stage that swallows its cancellation",
        LOOPS,
        "            return [_ALIVE]",
        "            return []",
    ),
    Guard(
        "1.8 an answer to a wrong request is silenced by cancel",
        ISLAND,
        "self.limit, self.is_fault = _NEVER, False",
        "self.limit = _NEVER",
    ),
    Guard(
        "3.5 cancel from another thread",
        ISLAND,
        "            self.loop_handle.call_soon_threadsafe(self.cancel)",
        "            pass",
    ),
    Guard(
        "3.12 a suspended drain ends at once",
        SYNC_ISLAND,
        "        if self.is_suspended and not self.is_fault:\n"
        "            self._enter(Input.FINISHED)",
        "        pass",
    ),
    Guard(
        "3.12 upstream is cancelled while a task unwinds",
        TASK_ISLAND,
        "    cancel_task(self.task)\n        self._close_source()\n",
        "    cancel_task(self.task)\n",
    ),
    Guard(
        "3.12 cancel ends what a stage awaits",
        TASK_ISLAND,
        "            cancel_task(self.task)",
        "            pass",
    ),
    Guard(
        "3.12 but not a suspended on_next",
        TASK_ISLAND,
        "if self.loop_handle.is_closed or not self.is_signalling:",
        "if True:",
    ),
    Guard(
        "3.13 the reference to the subscriber is dropped",
        ISLAND,
        "        self.subscriber = self.flush_batch = None\n",
        "",
    ),
    Guard(
        "3.13 the reference to a subscriber that is completed at once is dropped",
        SYNC_ISLAND,
        "self.subscriber = self.flush_batch = self.source = self.drain = self.send = None",
        "pass",
    ),
    Guard(
        "3.13 the source is closed",
        ISLAND,
        "source.close()\n        except STOPS_PROGRAM:",
        "pass\n        except STOPS_PROGRAM:",
    ),
    Guard(
        "3.13 upstream is cancelled",
        INPUT,
        "        if upstream is not None and is_live:\n",
        "        if False:\n",
    ),
    Guard(
        "3.15 an error in the source's cleanup",
        ISLAND,
        "        except BaseException as error:\n            self._report_dropped(error)",
        "        finally:\n            pass",
    ),
    Guard(
        "3.16 upstream raises in request",
        ISLAND,
        "        queue.upstream_raised(as_failure(error))\n",
        "        raise error\n",
    ),
    Guard(
        "3.16 a request after the loop has closed",
        ISLAND,
        "elif loop_handle.event_loop.is_closed():",
        "elif False:",
    ),
    # -- a subscriber that raises
    Guard(
        "2.13 on_next raises",
        SYNC_ISLAND,
        '            self._subscriber_raised("on_next", error.error)\n            return',
        "            self.error = error.error",
    ),
    Guard(
        "2.13 on_next raises in a task",
        TASK_ISLAND,
        'self._subscriber_raised("on_next", raised.error)\n        except',
        "self.error = raised.error\n        except",
    ),
    Guard(
        "2.13 on_subscribe raises",
        ISLAND,
        'self._subscriber_raised("on_subscribe", error)',
        "raise",
    ),
    Guard(
        "2.13 a terminal signal raises",
        ISLAND,
        'self._subscriber_raised("on_complete" if error is None else "on_error", raised)',
        "raise",
    ),
    Guard(
        "2.13 the error is reported",
        ISLAND,
        "            raise error\n        self.loop_handle.report(",
        "            raise error\n        str(",
    ),
    # -- threads, fairness, context, tasks
    Guard(
        "threads: an island wakes on the loop's thread",
        ISLAND,
        "            if get_ident() != loop_handle.thread:\n"
        "                loop_handle.call_soon_threadsafe(self._enter, _REQUEST)\n            elif",
        "            if",
    ),
    Guard(
        "threads: signals of foreign publishers arrive on the loop's thread",
        INNER,
        "            self._owner.loop_handle.call_soon_threadsafe(self.on_next, element)",
        "            self._owner.loop_handle.run(self.on_next.__func__, self, element)",
    ),
    Guard(
        "fairness: a synchronous drain yields to the loop",
        SYNC_ISLAND,
        "        if pause is SLICE_OVER or pause is AWAIT_SIGNAL:\n",
        "        if pause is SLICE_OVER:\n            return True\n"
        "        if pause is AWAIT_SIGNAL:\n",
    ),
    Guard(
        "fairness: a task yields to the loop", TASK_ISLAND, "        await yield_to_loop()\n", ""
    ),
    Guard(
        "fairness: a pushed island yields when more work is left",
        LOOPS,
        '"TURN": "if S.is_slice_over:\\n    S.emitted = emitted\\n    yield SLICE_OVER",',
        '"TURN": "",',
    ),
    Guard(
        "fairness: a pushed task yields when more work is left",
        LOOPS,
        '"TURN": "if S.is_slice_over:\\n    S.emitted = emitted\\n    await S.yield_slice()",',
        '"TURN": "",',
    ),
    Guard(
        "fairness: a stage that expands one element yields to the loop",
        LOOPS,
        "*_indent(1, self._turn_mid_element())]",
        "]",
    ),
    Guard(
        "fairness: the clock decides, not a count",
        CORE + "time_slice.py",
        "self.is_slice_over = now >= self.slice_end",
        "self.is_slice_over = False",
    ),
    Guard(
        "context: callbacks run in the subscriber's context",
        CORE + "loop.py",
        "            return self.context.run(work, argument)",
        "            return work(argument)",
    ),
    Guard(
        "tasks: an interruption is reported",
        TASK_ISLAND,
        'self.error = Interrupted("the task of this subscription was cancelled from outside")',
        "pass",
    ),
    Guard(
        "tasks: a cancellation before the first step is reported (3.13)",
        ISLAND,
        "        if self.phase is not Phase.CLOSED:\n            if not self.is_stopped:",
        "        if False:\n            if not self.is_stopped:",
    ),
    Guard(
        "tasks: CancelledError is not swallowed",
        TASK_ISLAND,
        "                self.error = Interrupted("
        '"the task of this subscription was cancelled from outside")\n                raise',
        "                self.error = Interrupted("
        '"the task of this subscription was cancelled from outside")\n                return',
    ),
    Guard(
        "tasks: cancelling a task that waits for cleanup does not cancel the cleanup",
        CORE + "loop.py",
        "await asyncio.wait([asyncio.ensure_future(each) for each in work])",
        "await asyncio.gather(*work, return_exceptions=True)",
    ),
    # -- elements that are discarded
    Guard(
        "discards: elements that wait for an island",
        INPUT,
        "        if self.on_discard is not None:\n            discard(",
        "        if False:\n            discard(",
    ),
    Guard(
        "discards: elements that an upstream has sent to an operator",
        INNER,
        "            self._discard(held)",
        "            pass",
    ),
    Guard(
        "discards: elements that an upstream sends after it was cancelled",
        INNER,
        "                self._discard((element,))",
        "                pass",
    ),
    Guard(
        "discards: elements that an operator emits after its end",
        CORE + "upstreams/coordinator.py",
        "                self.discard(elements)\n                return",
        "                return",
    ),
    Guard(
        "discards: elements in a queue",
        CORE + "queues/output_buffer.py",
        "            self.discard(discarded)",
        "            pass",
    ),
    Guard(
        "discards: elements of a group or window",
        CORE + "upstreams/splitting.py",
        "            self._discard(discarded)",
        "            pass",
    ),
    Guard(
        "discards: elements that stages hold",
        LOOPS,
        'held or ["pass"]',
        '["pass"]',
    ),
    Guard(
        "discards: the element with which a stage raises",
        LOOPS,
        """            *_indent(1, self._lost_at("error")),\n""",
        "",
    ),
    Guard(
        "discards: an element that was delivered is not in the loop's hands",
        LOOPS,
        """return [f"if {position}:", f"    D.lost""",
        """return ["if True:", f"    D.lost""",
    ),
    # -- foreign publishers and subscribers
    Guard(
        "2.5 a second subscription",
        INNER,
        "            self._cancel(subscription)  # 2.5",
        "            pass",
    ),
    Guard(
        "2.13 None from a foreign publisher",
        INNER,
        "        if element is None:\n            raise self._fail_none(",
        "        if False:\n            raise self._fail_none(",
    ),
    Guard(
        "1.9 a missing subscriber",
        CORE + "subscription/subscribing.py",
        "    if subscriber is None:",
        "    if False:",
    ),
)


class Verdict(NamedTuple):
    """What happened without the guard."""

    guard: Guard
    failed: str
    """The first test that noticed; empty when none did."""


def prove(guard: Guard, copy: Path) -> Verdict:
    """Run the tests without *guard*."""
    path = copy / guard.file
    before = path.read_text()
    if before.count(guard.text) != 1:
        found = before.count(guard.text)
        raise SystemExit(f"{guard.name}: found {found} times in {guard.file}:\n{guard.text}")
    path.write_text(before.replace(guard.text, guard.without))
    try:
        return Verdict(guard, first_failure(copy))
    finally:
        path.write_text(before)


def first_failure(copy: Path) -> str:
    """The first test that fails; empty if none does."""
    command = [sys.executable, "-u", "-m", "pytest", "-x", "-v", "--timeout=60", "--tb=no",
               "-p", "no:cacheprovider", "-k", "not uvloop", *TESTS]  # fmt: skip
    with tempfile.TemporaryFile("w+") as output:
        try:
            code = subprocess.run(
                command, cwd=copy, stdout=output, stderr=output, check=False, timeout=SECONDS,
                preexec_fn=limit_memory,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            code = None
        output.seek(0)
        # A line of `-v`, since a run that hangs after its failure prints no summary.
        named = re.search(r"^(tests/\S+?::\w+).* (?:FAILED|ERROR)\b", output.read(), re.M)
    ended = {0: "", None: "(the whole run: it never ends)"}
    return named[1] if named else ended.get(code, "(the whole run: it was stopped)")


def limit_memory() -> None:
    """A loop that never yields collects elements until the memory is full: here, its test fails."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))


def lines(verdicts: list[Verdict]) -> list[str]:
    """The table in Markdown."""
    out = [
        "# Guards of the contract of signals",
        "",
        "Each was removed once; the last column names the first test that failed. Made by",
        "`python -m tests.contract.prove_guards`, where the removals are written out.",
        "",
        "| guard | where | noticed by |",
        "|---|---|---|",
    ]
    for guard, failed in verdicts:
        test = failed.replace("tests/", "", 1) or "**no test**"
        out.append(f"| {guard.name} | `{guard.file.removeprefix('reactive_aio/')}` | `{test}` |")
    return out


def main(words: list[str]) -> int:
    """Prove the guards whose names contain one of *words*; all, and write the table, without."""
    chosen = [each for each in GUARDS if not words or any(word in each.name for word in words)]
    verdicts: list[Verdict] = []
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory) / "copy"
        ignored = shutil.ignore_patterns(".*", "__pycache__", "benchmarks", "examples")
        shutil.copytree(ROOT, copy, ignore=ignored)
        if failed := first_failure(copy):
            raise SystemExit(f"with all guards, {failed} fails: it would notice everything")
        for guard in chosen:
            verdict = prove(guard, copy)
            verdicts.append(verdict)
            sys.stdout.write(f"{guard.name}: {verdict.failed or 'NO TEST FAILED'}\n")
            sys.stdout.flush()
    if not words:
        TABLE.write_text("\n".join(lines(verdicts)) + "\n")
    return sum(not verdict.failed for verdict in verdicts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
