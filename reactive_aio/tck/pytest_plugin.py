"""The pytest plugin: one test for each law.

``pytest --rs-tck package.module:factory`` collects the laws for what the factory returns. Inside a
test module ``test_conformance = laws(factory)`` does the same, and so does a class whose laws need
fixtures::

    class TestConformance(Laws):
        def candidate(self) -> tck.Candidate:
            return tck.Candidate(publisher=lambda n: MyPublisher(n))

pytest loads this module on every start, so the kit is imported only when there is a candidate.
"""

import sys
from collections.abc import Callable, Generator, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pytest

if TYPE_CHECKING:
    from .candidate import Candidate
    from .report.verdict import Verdict
    from .run.checking import Case, Judge
    from .timeouts import Timeouts

__all__ = ("Laws", "laws")

NAME: Final = "rs-tck"
PARAMETER: Final = "rs_law"
MARKER: Final = (
    "rs_tck(rule, role, strength): a law of Reactive Streams; "
    "select with -m rs_tck or -m \"rs_tck(rule='1.9')\""
)


# -- in test modules -------------------------------------------------------------------------------
def laws(candidate: "Candidate | Callable[[], Candidate]") -> Callable[..., None]:
    """Make a test function with one test for each law that judges *candidate*."""
    made = candidate() if callable(candidate) else candidate
    judge = _new_judge()

    def test(rs_law: "Case", request: pytest.FixtureRequest) -> None:
        _apply(judge.judge(rs_law), request.config)

    every = _cases(made)
    return pytest.mark.parametrize(PARAMETER, every, ids=[case.id for case in every])(test)


class Laws:
    """Base of a test class with one test for each law; override `candidate`.

    `candidate` is called once to find the laws that apply, and then for each law on the instance
    that runs it: its factories may use attributes that fixtures have set.
    """

    timeouts: ClassVar["Timeouts | None"] = None
    """None: the kit's default timeouts."""

    def candidate(self) -> "Candidate":
        """The candidate to judge."""
        raise NotImplementedError(f"{type(self).__name__} needs a method candidate(self)")

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each law."""
        if PARAMETER in metafunc.fixturenames:
            every = _cases(self.candidate())
            metafunc.parametrize(PARAMETER, every, ids=[case.id for case in every])

    def test_law(self, rs_law: "Case", request: pytest.FixtureRequest) -> None:
        """One law."""
        judges = request.config.stash.setdefault(_JUDGES, {})
        judge = judges.setdefault(type(self), _new_judge(self.timeouts))
        # The same case of this instance's candidate, whose factories see the fixtures of this test.
        case = next(each for each in _cases(self.candidate()) if each.id == rs_law.id)
        _apply(judge.judge(case), request.config)


def _new_judge(timeouts: "Timeouts | None" = None) -> "Judge":
    """A judge for all roles: its timeouts stay reduced after the candidate has hung."""
    from .run.checking import Judge
    from .timeouts import Timeouts

    return Judge(timeouts or Timeouts())


_JUDGES: Final = pytest.StashKey["dict[type, Judge]"]()


def _cases(candidate: "Candidate") -> "list[Case]":
    from .run.checking import cases

    return cases(candidate)


def _apply(verdict: "Verdict", config: pytest.Config) -> None:
    """Turn a verdict into the outcome of the current test."""
    __tracebackhide__ = True
    from .report.verdict import Outcome, explain, heading
    from .rules import Strength

    if verdict.outcome is Outcome.NOT_JUDGED:
        pytest.skip(verdict.why)
    if not verdict.fails:
        return
    if verdict.strength is not Strength.MUST and not config.getoption("rs_tck_strict", False):
        pytest.xfail(f"{verdict.strength.name}: {verdict.why}")
    # pytest's summary shows the first line.
    text = "\n".join([verdict.why, "", heading(verdict), *explain(verdict)])
    pytest.fail(text, pytrace=False)


# -- on the command line ---------------------------------------------------------------------------
def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup(NAME, "conformance to Reactive Streams")
    group.addoption(
        "--rs-tck",
        action="append",
        default=[],
        dest="rs_tck",
        metavar="MODULE:FACTORY",
        help="judge the reactive_aio.tck.Candidate that this factory returns; can be repeated. "
        "Without other arguments no other tests are run.",
    )
    group.addoption(
        "--rs-tck-strict",
        action="store_true",
        dest="rs_tck_strict",
        help="a broken law of strength SHOULD is a failure, too",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)
    if not _factories(config):
        return
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = []  # no other tests were requested
    here = str(config.invocation_params.dir)
    if here not in sys.path:
        sys.path.append(here)  # as with python -m, but last: it hides no other module


def _factories(config: pytest.Config) -> list[str]:
    paths: list[str] = config.option.rs_tck
    return list(dict.fromkeys(paths))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if isinstance(collector, pytest.Session) and report.passed:
        make: Any = Factory  # from_parent passes its arguments on untyped
        report.result = list(report.result or [])
        for where in _factories(collector.config):
            nodeid = f"{NAME}::{where}"
            report.result.append(make.from_parent(collector, name=where, nodeid=nodeid))
    return report


class Factory(pytest.Collector):
    """A factory on the command line; collects the laws for its candidate."""

    @cached_property
    def judge(self) -> "Judge":
        return _new_judge()

    def collect(self) -> "Iterable[LawItem]":
        from .candidate import InvalidCandidate, load_candidate

        try:
            every = _cases(load_candidate(self.name))
        except InvalidCandidate as error:
            raise self.CollectError(f"--rs-tck {self.name}: {error}") from None
        make: Any = LawItem
        for case in every:
            yield make.from_parent(self, name=case.id, case=case)


class LawItem(pytest.Item):
    """One law, judging the candidate of a factory."""

    parent: Factory

    def __init__(self, *, case: "Case", **kwargs: Any) -> None:
        super().__init__(**kwargs)  # pyright: ignore[reportUnknownMemberType]
        self.case: Case = case
        _mark(self, case)

    def runtest(self) -> None:
        _apply(self.parent.judge.judge(self.case), self.config)

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Report all laws in one file, whose name pytest prints once."""
        return self.config.rootpath / NAME, None, self.name


# -- for both --------------------------------------------------------------------------------------
def pytest_itemcollected(item: pytest.Item) -> None:
    """Add the marker to laws in test modules."""
    callspec = getattr(item, "callspec", None)
    if callspec is not None and PARAMETER in callspec.params:
        _mark(item, callspec.params[PARAMETER])


def _mark(item: pytest.Item, case: "Case") -> None:
    law = case.law
    item.add_marker(pytest.mark.rs_tck(rule=law.rule, role=case.role, strength=law.strength.name))


def pytest_report_collectionfinish(items: list[pytest.Item]) -> str | None:
    """Report how many laws will run, since zero would look like success."""
    count = sum(item.get_closest_marker("rs_tck") is not None for item in items)
    return f"{NAME}: {count} {'law' if count == 1 else 'laws'}" if count else None


def pytest_report_header(config: pytest.Config) -> str | None:
    paths = _factories(config)
    return f"{NAME}: {', '.join(paths)}" if paths else None
