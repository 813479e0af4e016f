"""The judge of servers: every law on connections of its own, one after another, and a report.

Laws that mostly wait for the server's patience run side by side, at the end. After each law the
server must take another connection: one that does not has been broken by what the law did.
"""

import asyncio
import ssl
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ...errors import RuleViolation
from ...testing.safe_repr import safe_repr
from ..law import NotJudged
from ..report.verdict import Outcome, Report, Verdict
from ..terms import Terms
from . import frames
from .keeper import Keeper
from .law import WireLaw
from .laws import WIRE_LAWS
from .links import Place
from .offer import OFFERS, Offer
from .rules import WIRE_RULES
from .talk import Talk, Unreachable

__all__ = ("TERMS", "NetworkJudge", "check_server")

TERMS = Terms(come=5.0, quiet=0.03)
SERVER = "server"


def check_server(
    uri: str,
    offer: Offer | None = None,
    *,
    rules: Iterable[str] = (),
    terms: Terms = TERMS,
    trusted: ssl.SSLContext | None = None,
    start: Sequence[str] = (),
    begun: Callable[[int, int, str], object] | None = None,
) -> Report:
    """Judge the server at *uri* by all laws of the wire, or by those of some *rules* only.

    With *start*, a command, the kit starts the server itself, and again when a law has ended it.
    Raises ValueError if *uri* is no address, ConnectionError if nobody answers there.
    """
    place = Place.parse(uri)
    keeper = Keeper(start) if start else None
    judge = NetworkJudge(place, offer or Offer(), terms, trusted, keeper)
    try:
        return asyncio.run(judge.run(uri, chosen(rules), begun))
    finally:
        if keeper is not None:
            keeper.close()


def chosen(rules: Iterable[str]) -> list[WireLaw]:
    """The laws of some rules (``N.14``), or of those names; all if none are named."""
    wanted = set(rules)
    return [
        law for law in WIRE_LAWS.values() if not wanted or law.rule in wanted or law.name in wanted
    ]


@dataclass
class NetworkJudge:
    """Judges one server."""

    place: Place
    offer: Offer
    terms: Terms
    trusted: ssl.SSLContext | None = None
    keeper: Keeper | None = None
    gone: str = ""
    """Why nobody answers any more."""

    async def run(
        self,
        name: str,
        laws: list[WireLaw],
        begun: Callable[[int, int, str], object] | None = None,
    ) -> Report:
        """The verdicts of *laws*."""
        why = await (self._answers() if self.keeper is None else self._start(self.keeper))
        if why:
            raise ConnectionError(f"nobody can be judged at {name}: {why}")
        lacking = await self._lacking({need for law in laws for need in law.needs})
        report = Report(name)
        for number, law in enumerate([law for law in laws if not law.slow], 1):
            if begun is not None:
                begun(number, len(laws), law.name)
            report.verdicts.append(await self.judge(law, lacking))
        slow = [law for law in laws if law.slow]
        if slow and begun is not None:
            begun(len(laws), len(laws), "those that take patience")
        report.verdicts += await asyncio.gather(*(self.judge(law, lacking) for law in slow))
        order = {law.name: at for at, law in enumerate(laws)}
        report.verdicts.sort(key=lambda verdict: order[verdict.law])
        return report

    async def judge(self, law: WireLaw, lacking: dict[str, str]) -> Verdict:
        """The verdict of one law."""
        if self.gone:
            self.gone = await (self._answers() if self.keeper is None else self._start(self.keeper))
        if self.gone:
            return _verdict(law, Outcome.NOT_JUDGED, f"the server is gone: {self.gone}")
        missing = [lacking[need] for need in law.needs if need in lacking]
        if missing:
            return _verdict(law, Outcome.NOT_JUDGED, "; ".join(missing))
        began = time.perf_counter()
        talk = self._talk()
        try:
            verdict = await self._judge(law, talk)
        finally:
            await talk.close()
        if talk.waited_in_vain:
            # A server that hangs is not waited for as long again.
            self.terms = replace(self.terms, come=min(self.terms.come, self.terms.come_again))
        return replace(verdict, seconds=time.perf_counter() - began)

    async def _start(self, keeper: Keeper) -> str:
        why = await keeper.start(self._answers)
        self.offer = replace(self.offer, pid=keeper.pid)
        return why

    def _talk(self) -> Talk:
        return Talk(self.place, self.offer, self.terms, self.trusted)

    async def _judge(self, law: WireLaw, talk: Talk) -> Verdict:
        error: BaseException | None = None
        try:
            async with asyncio.timeout(max(self.terms.longest, self.offer.patience + 10)):
                await law.scenario(talk)
        except (RuleViolation, NotJudged, Unreachable, TimeoutError) as caught:
            error = caught
        except Exception as caught:
            lines = "".join(traceback.format_exception(caught)[-2:])
            return replace(
                _verdict(law, Outcome.FAIL, f"{safe_repr(caught)} came out of the law"), stack=lines
            )
        fault = error if isinstance(error, RuleViolation) else talk.first_fault()
        self.gone = await self._answers()
        if self.gone:
            how = ""
            if self.keeper is not None:
                how = f"; {await asyncio.to_thread(self.keeper.how)}"
            what = f"after this the server takes nobody else: {self.gone}{how}"
            return _broken(law, RuleViolation("N.13", what), talk)
        if fault is not None:
            return _broken(law, fault, talk)
        if isinstance(error, NotJudged):
            return _verdict(law, Outcome.NOT_JUDGED, str(error))
        if isinstance(error, Unreachable):
            return _broken(law, RuleViolation("N.13", str(error)), talk)
        if error is not None:
            return _broken(law, RuleViolation(law.rule, "it took too long"), talk)
        return _verdict(law, Outcome.PASS)

    async def _answers(self) -> str:
        """Why the server does not take a connection; empty if it does."""
        # Nobody is called dead in a hurry.
        terms = replace(self.terms, come=max(self.terms.come, TERMS.come))
        talk = Talk(self.place, self.offer, terms, self.trusted)
        try:
            await talk.connect()
        except Unreachable as error:
            return str(error)
        finally:
            await talk.close()
        return ""

    # -- what is offered ---------------------------------------------------------------------------
    async def _lacking(self, needs: set[str]) -> dict[str, str]:
        """Which of *needs* the server does not offer, and how that is known."""
        lacking: dict[str, str] = {}
        for need in OFFERS:
            if need not in needs:
                continue
            if not self.offer.route(need):
                lacking[need] = f"the server is said not to offer {need!r}"
            elif need != "fail":
                told = await self._refused(need)
                if told:
                    lacking[need] = f"the server does not offer {need!r}: {told}"
        return lacking

    async def _refused(self, need: str) -> str:
        """The error by which the server refuses what it should offer."""
        talk = self._talk()
        kinds = {
            "stream": frames.REQUEST_STREAM,
            "endless": frames.REQUEST_STREAM,
            "channel": frames.REQUEST_CHANNEL,
        }
        try:
            peer = await talk.connect()
            kind = kinds.get(need, frames.REQUEST_RESPONSE)
            data = b"response" if need == "ask" else b"?"
            books = await peer.request(kind, need, data=data, length=1)
            within = 0.2 if need == "never" else None
            await peer.until(
                lambda: bool(books.ended or books.elements or peer.theirs or peer.ended), within
            )
            if books.ended == "error":
                return f"it answered by ERROR 0x{books.code:X}"
        except Unreachable as error:
            return str(error)
        finally:
            await talk.close()
        return ""


def _verdict(law: WireLaw, outcome: Outcome, why: str = "") -> Verdict:
    return Verdict(
        law=law.name,
        role=SERVER,
        rule=law.rule,
        strength=law.strength,
        text=law.text,
        outcome=outcome,
        why=why,
    )


def _broken(law: WireLaw, fault: RuleViolation, talk: Talk) -> Verdict:
    rule = fault.rule or law.rule
    verdict = _verdict(law, Outcome.FAIL, f"rule {rule}: {fault.what}")
    known = WIRE_RULES.get(rule)
    strength = law.strength if known is None else known.strength
    marked = [each for each in talk.journals if each.has_offence]
    marked = marked or [each for each in talk.journals if each.entries][-1:]
    log = str(marked[0]) if marked else ""
    return replace(verdict, broken=rule, strength=strength, log=log)
