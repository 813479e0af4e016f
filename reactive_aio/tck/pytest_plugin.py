"""The pytest plugin: one test for each law.

``pytest --rs-tck package.module:factory`` collects the laws for what the factory returns. Inside a
test module ``test_conformance = laws(factory)`` does the same, and so does a class whose laws need
fixtures::

    class TestConformance(Laws):
        def subject(self) -> tck.Subject:
            return tck.Subject(publisher=lambda n: MyPublisher(n))

pytest loads this module on every start, so the kit is imported when there is a subject, not before.
"""

import sys
from collections.abc import Callable, Generator, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pytest

if TYPE_CHECKING:
    from .report.verdict import Verdict
    from .run.checking import Case
    from .subject import Subject
    from .terms import Terms

__all__ = ("Laws", "laws")

ROOM: Final = "rs-tck"
PARAMETER: Final = "rs_law"
MARKER: Final = (
    "rs_tck(rule, role, strength): a law of Reactive Streams; "
    "select with -m rs_tck or -m \"rs_tck(rule='1.9')\""
)


# -- in test modules -------------------------------------------------------------------------------
def laws(subject: "Subject | Callable[[], Subject]") -> Callable[..., None]:
    """Make a test function with one test for each law that judges *subject*."""
    made = subject() if callable(subject) else subject
    panel = _Panel()

    def test(rs_law: "Case", request: pytest.FixtureRequest) -> None:
        _settle(panel.judge(rs_law), request.config)

    every = _cases(made)
    return pytest.mark.parametrize(PARAMETER, every, ids=[case.id for case in every])(test)


class Laws:
    """Base of a test class with one test for each law; `subject` says what is judged.

    `subject` is called once to find the laws that apply, and then for each law on the instance that
    runs it: its factories may use what fixtures have put there.
    """

    terms: ClassVar["Terms | None"] = None
    """How long is waited; None: as the kit does by itself."""

    def subject(self) -> "Subject":
        """What is judged."""
        raise NotImplementedError(f"{type(self).__name__} needs a method subject(self)")

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each law."""
        if PARAMETER in metafunc.fixturenames:
            every = _cases(self.subject())
            metafunc.parametrize(PARAMETER, every, ids=[case.id for case in every])

    def test_law(self, rs_law: "Case", request: pytest.FixtureRequest) -> None:
        """One law."""
        panels: dict[type, _Panel] = request.config.stash.setdefault(_PANELS, {})
        panel = panels.setdefault(type(self), _Panel(self.terms))
        # The same case of what this instance makes: its factories see this test's fixtures.
        case = next(each for each in _cases(self.subject()) if each.id == rs_law.id)
        _settle(panel.judge(case), request.config)


class _Panel:
    """Judges by role. They share what they have learnt of the subject's patience."""

    def __init__(self, terms: "Terms | None" = None) -> None:
        self._terms = terms

    def judge(self, case: "Case") -> "Verdict":
        from .run.judge import Judge
        from .terms import Terms

        judge: Judge = Judge(case.subject, case.role, self._terms or Terms())
        verdict = judge.judge(case.law)
        self._terms = judge.terms
        return verdict


_PANELS: Final = pytest.StashKey[dict[type, _Panel]]()


def _cases(subject: "Subject") -> "list[Case]":
    from .run.checking import cases

    return cases(subject)


def _settle(verdict: "Verdict", config: pytest.Config) -> None:
    """Make a verdict the outcome of the test that runs."""
    __tracebackhide__ = True
    from .report.show import explain, heading
    from .report.verdict import Outcome
    from .rules import Strength

    if verdict.outcome is Outcome.NOT_JUDGED:
        pytest.skip(verdict.why)
    if not verdict.fails:
        return
    if verdict.strength is not Strength.MUST and not config.getoption("rs_tck_strict", False):
        pytest.xfail(f"{verdict.strength.name}: {verdict.why}")
    # The first line is what pytest's summary shows.
    text = "\n".join([verdict.why, "", heading(verdict), *explain(verdict)])
    pytest.fail(text, pytrace=False)


# -- on the command line ---------------------------------------------------------------------------
def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup(ROOM, "conformance to Reactive Streams")
    group.addoption(
        "--rs-tck",
        action="append",
        default=[],
        dest="rs_tck",
        metavar="MODULE:FACTORY",
        help="judge what this factory returns, a reactive_aio.tck.Subject; can be repeated. "
        "Without other arguments nothing else is run.",
    )
    group.addoption(
        "--rs-tck-strict",
        action="store_true",
        dest="rs_tck_strict",
        help="a law of strength SHOULD that fails is a failure, too",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    if not _places(config):
        return
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = []  # nobody has asked for other tests
    here = str(config.invocation_params.dir)
    if here not in sys.path:
        sys.path.append(here)  # as with python -m; but nothing of it hides anything


def _places(config: pytest.Config) -> list[str]:
    places: list[str] = config.option.rs_tck
    return list(dict.fromkeys(places))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if isinstance(collector, pytest.Session) and report.passed:
        factories = [_factory(collector, each) for each in _places(collector.config)]
        report.result = [*(report.result or []), *factories]
    return report


def _factory(session: pytest.Session, where: str) -> "Factory":
    make: Any = Factory  # pytest passes what __init__ takes through untyped
    found: Factory = make.from_parent(session, name=where, nodeid=f"{ROOM}::{where}")
    return found


class Factory(pytest.Collector):
    """A factory on the command line: its laws."""

    @cached_property
    def panel(self) -> _Panel:
        return _Panel()

    def collect(self) -> "Iterable[LawItem]":
        """One item for each law."""
        from .subject import BadSubject, find_subject

        try:
            every = _cases(find_subject(self.name))
        except BadSubject as error:
            raise self.CollectError(f"--rs-tck {self.name}: {error}") from None
        make: Any = LawItem
        for case in every:
            yield make.from_parent(self, name=case.id, case=case)


class LawItem(pytest.Item):
    """One law for the subject of a factory."""

    parent: Factory

    def __init__(self, *, case: "Case", **kwargs: Any) -> None:
        super().__init__(**kwargs)  # pyright: ignore[reportUnknownMemberType]
        self.case: Case = case
        _mark(self, case)

    def runtest(self) -> None:
        _settle(self.parent.panel.judge(self.case), self.config)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """As if all laws were in one file: pytest prints its name once."""
        return self.config.rootpath / ROOM, None, self.name


# -- for both --------------------------------------------------------------------------------------
def pytest_itemcollected(item: pytest.Item) -> None:
    """Laws in test modules get the same marker."""
    callspec = getattr(item, "callspec", None)
    if callspec is not None and PARAMETER in callspec.params:
        _mark(item, callspec.params[PARAMETER])


def _mark(item: pytest.Item, case: "Case") -> None:
    law = case.law
    item.add_marker(pytest.mark.rs_tck(rule=law.rule, role=case.role, strength=law.strength.name))


def pytest_report_collectionfinish(items: list[pytest.Item]) -> str | None:
    """How many laws will be run: none would look like success."""
    count = sum(item.get_closest_marker("rs_tck") is not None for item in items)
    return f"{ROOM}: {count} {'law' if count == 1 else 'laws'}" if count else None


def pytest_report_header(config: pytest.Config) -> str | None:
    places = _places(config)
    return f"{ROOM}: {', '.join(places)}" if places else None
