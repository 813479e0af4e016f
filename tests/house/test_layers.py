"""`reactive_aio.testing` and `reactive_aio.tck` work without the runtime.

import-linter reads their imports; here they are executed. Importing `reactive_aio.tck` normally
imports `reactive_aio`, and so the runtime, first. So here `reactive_aio` is an empty package.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PROOF = ("reactive_aio.testing", "reactive_aio.tck")
BASE = {"reactive_aio", "reactive_aio.spec", "reactive_aio.errors"}

IMPORT_ALL = """
import sys
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
print(*sorted(sys.modules))
"""


def imported_by(*rooms: str) -> set[str]:
    """All imported modules after every module of *rooms* has been imported."""
    command = [sys.executable, "-c", IMPORT_ALL, *rooms]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return set(ended.stdout.split())


def of_this_package(modules: set[str]) -> set[str]:
    return {each for each in modules if each.startswith("reactive_aio")}


def test_testing_and_tck_work_without_the_runtime() -> None:
    others = {each for each in of_this_package(imported_by(*PROOF)) if not each.startswith(PROOF)}
    assert others <= BASE


def test_testing_works_without_tck() -> None:
    assert not {
        each for each in of_this_package(imported_by(PROOF[0])) if each.startswith(PROOF[1])
    }


def test_testing_and_tck_need_the_standard_library_only() -> None:
    bare = set(subprocess.check_output(
        [sys.executable, "-c", "import sys; print(*sys.modules)"], text=True
    ).split())  # fmt: skip
    tops = {each.partition(".")[0] for each in imported_by(*PROOF) - bare}
    assert tops - sys.stdlib_module_names <= {"reactive_aio"}
