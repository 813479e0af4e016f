"""The judge of servers: runs every law on its own connections, one after another, and reports.

Laws that mostly wait until the server loses patience run concurrently, at the end. After each law
the server must accept another connection: if it does not, the law has broken it.
"""

import asyncio
import ssl
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ...errors import RuleViolation
from ...testing.safe_repr import safe_repr
from ..law import Law, NotJudged
from ..report.verdict import Outcome, Report, Verdict
from ..timeouts import Timeouts
from .frames import REQUEST_CHANNEL, REQUEST_RESPONSE, REQUEST_STREAM
from .laws import WIRE_LAWS
from .server import ROUTES, ServerProcess, ServerProfile
from .transports import ServerAddress
from .wire_context import ServerUnreachable, WireContext

TIMEOUTS = Timeouts(response=5.0, quiet_period=0.03)
SERVER = "server"
_KINDS = {"stream": REQUEST_STREAM, "endless": REQUEST_STREAM, "channel": REQUEST_CHANNEL}


def check_server(
    uri: str,
    profile: ServerProfile | None = None,
    *,
    rules: Iterable[str] = (),
    timeouts: Timeouts = TIMEOUTS,
    tls: ssl.SSLContext | None = None,
    start: Sequence[str] = (),
    on_start: Callable[[int, int, str], object] | None = None,
) -> Report:
    """Judge the server at *uri* by all laws of the wire, or by those of some *rules* only.

    With *start*, a command, the kit starts the server itself, and again after a law has ended it.
    Raises ValueError if *uri* is not an address, ConnectionError if no server answers.
    """
    address = ServerAddress.parse(uri)
    process = ServerProcess(start) if start else None
    judge = NetworkJudge(address, profile or ServerProfile(), timeouts, tls, process)
    try:
        return asyncio.run(judge.run(uri, select_laws(rules), on_start))
    finally:
        if process is not None:
            process.close()


def select_laws(rules: Iterable[str]) -> list[Law]:
    """The laws of some rules (``N.14``), or of those names; all if there are no *rules*."""
    selected = set(rules)
    return [law for law in WIRE_LAWS.values() if law.is_selected(selected)]


@dataclass
class NetworkJudge:
    """Judges one server."""

    address: ServerAddress
    profile: ServerProfile
    timeouts: Timeouts
    tls: ssl.SSLContext | None = None
    process: ServerProcess | None = None
    unreachable_because: str = ""
    """Why the server accepts no more connections; empty while it does."""

    async def run(
        self, name: str, laws: list[Law], on_start: Callable[[int, int, str], object] | None = None
    ) -> Report:
        """The verdicts of *laws*."""
        why = await self._start_or_connect()
        if why:
            raise ConnectionError(f"there is no server to judge at {name}: {why}")
        needs = {need for law in laws for need in law.needs}
        missing_routes = await self._missing_routes(needs)
        report = Report(name)
        for number, law in enumerate([law for law in laws if not law.is_slow], 1):
            if on_start is not None:
                on_start(number, len(laws), law.name)
            report.verdicts.append(await self.judge(law, missing_routes))
        slow_laws = [law for law in laws if law.is_slow]
        if slow_laws and on_start is not None:
            on_start(len(laws), len(laws), "the slow laws")
        report.verdicts += await asyncio.gather(
            *(self.judge(law, missing_routes) for law in slow_laws)
        )
        order = {law.name: at for at, law in enumerate(laws)}
        report.verdicts.sort(key=lambda verdict: order[verdict.law])
        return report

    async def judge(self, law: Law, missing_routes: dict[str, str]) -> Verdict:
        """The verdict of one law."""
        if self.unreachable_because:
            self.unreachable_because = await self._start_or_connect()
        if self.unreachable_because:
            why = f"the server is unreachable: {self.unreachable_because}"
            return Verdict.of(law, SERVER, Outcome.NOT_JUDGED, why)
        missing = [missing_routes[need] for need in law.needs if need in missing_routes]
        if missing:
            return Verdict.of(law, SERVER, Outcome.NOT_JUDGED, "; ".join(missing))
        began = time.perf_counter()
        async with self._new_context(law.rule) as context:
            verdict = await self._judge(law, context)
        if context.has_timed_out:
            # After a server has hung once, the next laws wait less.
            self.timeouts = self.timeouts.after_timeout()
        return replace(verdict, seconds=time.perf_counter() - began)

    async def _start_or_connect(self) -> str:
        """Start the server, if it is the kit's own; return why it accepts no connection."""
        if self.process is None:
            return await self._connection_error()
        why = await self.process.start(self._connection_error)
        self.profile = replace(self.profile, pid=self.process.pid)
        return why

    def _new_context(self, rule: str = "") -> WireContext:
        return WireContext(self.address, self.profile, self.timeouts, self.tls, rule)

    async def _judge(self, law: Law, context: WireContext) -> Verdict:
        error: BaseException | None = None
        try:
            async with asyncio.timeout(max(self.timeouts.law, self.profile.patience + 10)):
                await law.scenario(context)
        except (RuleViolation, NotJudged, ServerUnreachable, TimeoutError) as caught:
            error = caught
        except Exception as caught:
            lines = "".join(traceback.format_exception(caught)[-2:])
            return replace(
                Verdict.of(law, SERVER, Outcome.FAIL, f"{safe_repr(caught)} came out of the law"),
                stack=lines,
            )
        # The first fault of the server on any connection counts, whatever the law is about.
        faults = (fault for peer in context.peers for fault in peer.faults)
        violation = error if isinstance(error, RuleViolation) else next(faults, None)
        self.unreachable_because = await self._connection_error()
        if self.unreachable_because:
            how = ""
            if self.process is not None:
                how = f"; {await asyncio.to_thread(self.process.status)}"
            what = f"the server accepts no other connection: {self.unreachable_because}{how}"
            return _broken(law, RuleViolation("N.13", what), context)
        if violation is not None:
            return _broken(law, violation, context)
        if isinstance(error, NotJudged):
            return Verdict.of(law, SERVER, Outcome.NOT_JUDGED, str(error))
        if isinstance(error, ServerUnreachable):
            return _broken(law, RuleViolation("N.13", str(error)), context)
        if error is not None:
            return _broken(law, RuleViolation(law.rule, "the law did not end in time"), context)
        return Verdict.of(law, SERVER, Outcome.PASS)

    async def _connection_error(self) -> str:
        """Why the server does not accept a connection; empty if it does."""
        # With the full timeout, even after it has been reduced.
        timeouts = replace(self.timeouts, response=max(self.timeouts.response, TIMEOUTS.response))
        try:
            async with WireContext(self.address, self.profile, timeouts, self.tls) as context:
                await context.connect()
        except ServerUnreachable as error:
            return str(error)
        return ""

    # -- routes ------------------------------------------------------------------------------------
    async def _missing_routes(self, needs: set[str]) -> dict[str, str]:
        """Which of *needs* the server does not offer, and how the kit knows."""
        missing_routes: dict[str, str] = {}
        for need in ROUTES:
            if need not in needs:
                continue
            if not self.profile.routes.get(need):
                missing_routes[need] = f"the profile has no route {need!r}"
            elif need != "fail":
                refusal = await self._refusal(need)
                if refusal:
                    missing_routes[need] = f"the server does not offer {need!r}: {refusal}"
        return missing_routes

    async def _refusal(self, need: str) -> str:
        """The error by which the server refuses a request to the route; empty if it serves it."""
        data = b"response" if need == "ask" else b"?"
        within = 0.2 if need == "never" else None
        try:
            async with self._new_context() as context:
                peer = await context.connect()
                kind = _KINDS.get(need, REQUEST_RESPONSE)
                record = await peer.request(kind, need, data=data, length=1)
                await peer.wait_until(
                    lambda: bool(record.end or record.elements or peer.peer_streams), within
                )
        except ServerUnreachable as error:
            return str(error)
        return f"it answered by ERROR 0x{record.code:X}" if record.end == "error" else ""


def _broken(law: Law, violation: RuleViolation, context: WireContext) -> Verdict:
    verdict = Verdict.failed(law, SERVER, violation.rule or law.rule, violation.what)
    journals = [peer.journal for peer in context.peers]
    marked = [each for each in journals if each.has_offence]
    marked = marked or [each for each in journals if each.entries][-1:]
    return replace(verdict, log=str(marked[0]) if marked else "")
