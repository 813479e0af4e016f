"""The operators without a row: each joins in a form that passes its elements on unchanged.

One that holds elements may discard them when the source fails.
"""

from collections.abc import Iterable
from typing import Final

from tests.cases import identities, names
from tests.contract.pipelines.operators import EXCEPTIONS, OPERATORS, Operator
from tests.reference.docstrings import Docstring
from tests.reference.vocabulary import ENTRIES

__all__ = ("FORMS", "WITHOUT_ROW", "without_row")

FORMS: Final = identities()
"""What a program calls."""


def without_row(known: Iterable[str]) -> dict[str, Operator]:
    """A row for each operator that has a form, and no key in *known*."""
    return {key: _row(key) for key in identities(besides=known)}


def _row(key: str) -> Operator:
    [name] = names([key])
    entry = ENTRIES.get(name)
    loses = entry is None or not Docstring.of(entry.function).holds_nothing
    return Operator(f"FORMS[{key!r}]({{flow}})", loses_on_failure=loses)


WITHOUT_ROW: Final = without_row({*OPERATORS, *EXCEPTIONS})
