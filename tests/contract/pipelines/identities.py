"""The operators without a row: each joins in a form that passes its elements on unchanged."""

from collections.abc import Iterable
from typing import Final

from tests.cases import identities
from tests.contract.pipelines.operators import EXCEPTIONS, OPERATORS, Operator

__all__ = ("FORMS", "WITHOUT_ROW", "without_row")

FORMS: Final = identities()
"""What a program calls."""


def without_row(known: Iterable[str]) -> dict[str, Operator]:
    """A row for each operator that has a form, and no key in *known*."""
    return {key: Operator(f"FORMS[{key!r}]({{flow}})") for key in identities(besides=known)}


WITHOUT_ROW: Final = without_row({*OPERATORS, *EXCEPTIONS})
