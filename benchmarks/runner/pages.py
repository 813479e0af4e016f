"""Writes the results down: the table in README.md, every case in cases.md, a plot per family."""

from pathlib import Path
from typing import Final

from .catalog import FAMILIES, heading
from .plots import plot
from .results import Results
from .tables import all_cases, circumstances, summary

PLACE: Final = Path(__file__).parents[1]
BEGIN: Final = "<!-- written by `python -m benchmarks --write`; do not edit -->"
END: Final = "<!-- end of what is written -->"
CASES: Final = """# Every case

Written by `python -m benchmarks --write`, as [README.md](README.md) explains.

"""


def write_pages(results: Results, place: Path = PLACE) -> None:
    """Store *results*, and write every page and plot."""
    results.save(place / "results.json")
    results = Results.load(place / "results.json")  # the figures are rounded when they are stored
    for name, text in pages(results, (place / "README.md").read_text("utf-8")).items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text, "utf-8")


def pages(results: Results, readme: str) -> dict[str, str]:
    """Return the text of each file that is made of *results*."""
    plots = {family: plot(results.family(family), heading(family)) for family in FAMILIES}
    drawn = {f"plots/{family}.svg": text for family, text in plots.items() if text}
    return {
        "README.md": _replaced(readme, _written(results, list(drawn))),
        "cases.md": CASES + all_cases(results),
        **drawn,
    }


def _written(results: Results, drawn: list[str]) -> str:
    images = [f"![{_plain(path)}: × hand-written]({path})" for path in drawn]
    parts = [summary(results), "Measured:", circumstances(results), *images]
    return "\n\n".join(parts)


def _plain(path: str) -> str:
    return heading(Path(path).stem).replace("`", "")


def _replaced(readme: str, written: str) -> str:
    before, found, rest = readme.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (found and ended):
        raise LookupError(f"README.md lacks the line {BEGIN!r} or {END!r}")
    return f"{before}{BEGIN}\n\n{written}\n\n{END}{after}"


if __name__ == "__main__":
    write_pages(Results.load())
