"""Run tests with one change: ``python -m tests.guards.mutant CHANGE PYTEST-ARGUMENTS``.

*CHANGE* is a `Change` as a list in JSON; ``null`` is none. Its module is compiled from the changed
tree when it is imported. No file is written, so that several changes can be tried at a time.
"""

import json
import resource
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Final

from tests.guards.changes import ROOT, Change, changed

BYTES: Final = 4 << 30
"""A loop that never yields collects elements until the memory is full: here, its test fails."""


class _Loader(SourceFileLoader):
    change: Change

    def get_code(self, fullname: str) -> CodeType:
        return compile(changed(self.change), self.get_filename(fullname), "exec")


class _Finder(MetaPathFinder):
    """Finds the module of *change*, and no other."""

    def __init__(self, change: Change) -> None:
        self._change = change
        path = change.file.removesuffix(".py").removesuffix("/__init__")
        self._name = path.replace("/", ".")

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        spec = PathFinder.find_spec(fullname, path)
        assert spec is not None
        spec.loader = loader = _Loader(fullname, str(ROOT / self._change.file))
        loader.change = self._change
        return spec


def main(change: str, *arguments: str) -> int:
    if "reactive_aio" in sys.modules:
        raise RuntimeError("the package has been imported: a change would have no effect")
    if (fields := json.loads(change)) is not None:
        sys.meta_path.insert(0, _Finder(Change(*fields)))
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    import pytest

    # The modules of a plugin, as this package is one, would be loaded by what rewrites assertions.
    return int(pytest.main(["--assert=plain", *arguments]))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
