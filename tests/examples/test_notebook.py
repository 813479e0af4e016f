"""The notebook: its cells run from the first to the last, as a kernel runs them."""

import ast
import inspect
import json
import linecache
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import reactive_aio as rx
from reactive_aio import observe
from reactive_aio._core.observation import registry
from reactive_aio.observe.drawing import live

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"
CELLS: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text())["cells"]


async def run_cell(number: int, source: str, scope: dict[str, Any]) -> Any:
    """Run a cell; return the value of its last line, if that is an expression."""
    name = f"<cell {number}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    await run_code(compile(tree, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), scope)
    if isinstance(last, ast.Expr):
        line = ast.Expression(last.value)
        return await run_code(compile(line, name, "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), scope)
    return None


async def run_code(code: Any, scope: dict[str, Any]) -> Any:
    result = eval(code, scope)
    return await result if inspect.isawaitable(result) else result


def pictures(shown: list[Any]) -> Iterator[str]:
    for value in shown:
        if value is not None:
            bundle = value._repr_mimebundle_()
            ElementTree.fromstring(bundle["image/svg+xml"])
            assert bundle["text/html"].startswith("<div")
            yield bundle["image/svg+xml"]


@dataclass
class Cell:
    """The output of a cell, which can be changed."""

    shown: list[Any]

    def display(self, picture: Any) -> "Cell":
        self.shown.append(picture)
        return self

    def update(self, picture: Any) -> None:
        self.shown.append(picture)


@pytest.mark.virtual_time
async def test_the_notebook_shows_a_flow_before_it_runs_and_while_it_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_names", {})
    cell = Cell([])
    monkeypatch.setattr(live, "_displayed", cell.display)
    scope: dict[str, Any] = {"__name__": "__main__"}
    codes = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]
    shown = [await run_cell(i, source, scope) for i, source in enumerate(codes, 1)]
    before, first, *updates = pictures([shown[0], *cell.shown])
    assert len(updates) >= 3, "it was drawn again"
    assert "delivered" not in first
    running = updates[-1]
    assert "holds at most 32" in before
    assert "delivered" not in before
    assert " of 32 held" in running
    assert "delivered" in running
    printed = capsys.readouterr().out
    assert "║ boundary(32), holds at most 32 elements" in printed
    assert ">>map(int)<<" in printed
    assert 'File "<cell 4>", line 2, in <module>' in printed


async def test_without_a_notebook_a_picture_that_is_drawn_again_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"no notebook .* observe\.inspector\(\) .*svg\(\)"):
        async with observe.show(rx.just(1).name("a notebook")):
            pass
    with pytest.raises(ValueError, match=r"show: the flow has no name"):
        async with observe.show(rx.just(1)):
            pass


def test_the_notebook_is_stored_without_results() -> None:
    assert all(not cell["outputs"] for cell in CELLS if cell["cell_type"] == "code")


IN_JUPYTER = """
import sys
import nbformat
from nbclient import NotebookClient
updates = 0
class Client(NotebookClient):
    def process_message(self, msg, cell, cell_index):
        global updates
        updates += msg["msg_type"] == "update_display_data"
        return super().process_message(msg, cell, cell_index)
notebook = nbformat.read(sys.argv[1], as_version=4)
Client(notebook, timeout=100, kernel_name="python3").execute()
notebook.metadata["updates"] = updates
print(nbformat.writes(notebook))
"""


def in_python(program: str, *arguments: str) -> str:
    """What *program* prints; a client of Jupyter has a loop and warnings of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(NOTEBOOK.parents[1])},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.thorough
def test_a_kernel_of_jupyter_shows_the_pictures() -> None:
    ran = json.loads(in_python(IN_JUPYTER, str(NOTEBOOK)))
    cells = [cell for cell in ran["cells"] if cell["cell_type"] == "code"]
    before, running = (cell["outputs"][0]["data"] for cell in cells[:2])
    for shown in (before, running):
        assert {"text/html", "image/svg+xml", "text/vnd.mermaid", "text/plain"} <= shown.keys()
    assert ran["metadata"]["updates"] >= 3
    assert "delivered" in "".join(running["image/svg+xml"])
    assert ">>map(int)<<" in "".join(cells[3]["outputs"][0]["text"])


FAILING = """
import nbformat.v4 as notebooks
from nbclient import NotebookClient
cells = [
    "import reactive_aio as rx",
    "from reactive_aio.observe import tracebacks; end = tracebacks.install()",
    "await rx.just('x').boundary(2).map(int).to_list()",
    "end()",
]
notebook = notebooks.new_notebook(cells=[notebooks.new_code_cell(cell) for cell in cells])
NotebookClient(notebook, timeout=100, kernel_name="python3", allow_errors=True).execute()
[failure] = notebook.cells[2].outputs
print("\\n".join(failure.traceback))
print([cell.outputs for cell in notebook.cells[3:]])
"""


@pytest.mark.thorough
def test_a_kernel_of_jupyter_shows_folded_tracebacks() -> None:
    shown = in_python(FAILING)
    assert "frames of reactive_aio" in shown
    assert "/_core/" not in shown
    assert ">>map(int)<<" in shown
    assert shown.splitlines()[-1] == "[[]]"
