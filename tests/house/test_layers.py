"""What import-linter does not see: imports that are executed, and those for annotations alone.

`reactive_aio.testing` and `reactive_aio.tck` work without the runtime. Importing `reactive_aio.tck`
normally imports `reactive_aio`, and so the runtime, first. So here `reactive_aio` is an empty
package.
"""

import ast
import subprocess
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PROOF = ("reactive_aio.testing", "reactive_aio.tck")
BASE = {"reactive_aio", "reactive_aio.spec", "reactive_aio.errors"}

IMPORT_ALL = """
import sys
bare = {*sys.modules}
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType

package = sys.modules["reactive_aio"] = ModuleType("reactive_aio")
package.__path__ = ["reactive_aio"]
for name in sys.argv[1:]:
    room = import_module(name)
    for module in walk_packages(room.__path__, name + "."):
        if not module.name.endswith(("__main__", "pytest_plugin")):
            import_module(module.name)
print(*sorted(sys.modules.keys() - bare))
"""


def imported_by(*rooms: str) -> set[str]:
    """All modules that are imported with every module of *rooms*."""
    command = [sys.executable, "-c", IMPORT_ALL, *rooms]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(ended.stdout.split())


def test_testing_and_tck_work_without_the_runtime_and_need_the_standard_library_only() -> None:
    found = imported_by(*PROOF)
    ours = {each for each in found if each.startswith("reactive_aio")}
    assert {each for each in ours if not each.startswith(PROOF)} <= BASE
    tops = {each.partition(".")[0] for each in found}
    assert tops - sys.stdlib_module_names <= {"reactive_aio"}


def test_testing_works_without_tck() -> None:
    assert not {each for each in imported_by(PROOF[0]) if each.startswith(PROOF[1])}


# -- the room of RSocket, annotations included -----------------------------------------------------
def named_in(file: Path) -> set[str]:
    """The modules of RSocket that *file* imports, when it runs or for type checkers alone."""
    package = file.relative_to(ROOT).parts[:-1]
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
            module = ".".join(filter(None, base))
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return found


def rsocket_modules() -> dict[str, set[str]]:
    """What each module of RSocket names of the others."""
    room = ROOT / "reactive_aio" / "rsocket"
    files = {".".join(each.relative_to(ROOT).with_suffix("").parts): each
             for each in room.rglob("*.py") if each.stem != "__init__"}  # fmt: skip
    return {name: named_in(file) & files.keys() for name, file in files.items()}


def test_no_modules_of_rsocket_name_each_other_in_a_circle() -> None:
    assert [*TopologicalSorter(rsocket_modules()).static_order()]


def test_annotations_of_rsocket_name_lower_layers_only() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    [layers] = [each["layers"] for each in contracts["contracts"]
                if each.get("containers") == ["reactive_aio.rsocket"]]  # fmt: skip
    heights = {name: height for height, layer in enumerate(layers) for name in layer.split(" | ")}

    def height(module: str) -> int:
        return heights[module.split(".")[2]]

    upward = {
        (module, other)
        for module, others in rsocket_modules().items()
        for other in others
        if height(other) < height(module)
    }
    assert not upward
