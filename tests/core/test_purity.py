"""The pure rooms know nothing of an event loop; one door does."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import reactive_aio
from tests.harness.one_run import in_one_run

ROOT = Path(reactive_aio.__file__).parent
LOOPS = {"asyncio", "anyio", "trio", "uvloop"}
DOOR = {"loop.py"}
PURE = [
    "subscription.lifecycle",
    "demand",
    "trampoline",
    "subscription.input_queue",
    "time_slice",
    "compiler.inline",
    "compiler.chain",
]


def imports(path: Path) -> set[str]:
    """The top-level names of every module that *path* imports, wherever it does."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


@in_one_run
@pytest.mark.parametrize("path", sorted((ROOT / "_core").rglob("*.py")), ids=lambda path: path.name)
def test_only_the_loop_module_imports_an_event_loop(path: Path) -> None:
    assert (path.name in DOOR) == bool(imports(path) & LOOPS)


@pytest.mark.parametrize("name", ["spec.py", "errors.py"])
def test_the_base_imports_no_event_loop(name: str) -> None:
    assert not imports(ROOT / name) & LOOPS


@pytest.mark.parametrize("module", PURE)
def test_a_pure_module_runs_where_there_is_no_asyncio(module: str) -> None:
    """Not even by way of what it imports: it is loaded without the package's own front page."""
    program = f"""
import importlib, sys, types
for name in ("reactive_aio", "reactive_aio._core"):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [{str(ROOT)!r} + ("/_core" if name.endswith("_core") else "")]
for name in {sorted(LOOPS)!r}:
    sys.modules[name] = None
importlib.import_module("reactive_aio._core.{module}")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
