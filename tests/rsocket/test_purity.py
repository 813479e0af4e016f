"""The protocol needs no event loop."""

import subprocess
import sys
from pathlib import Path

import reactive_aio

ROOT = Path(reactive_aio.__file__).parent
PROGRAM = """
import importlib, sys, types
root = sys.argv[1]
for name in ("reactive_aio", "reactive_aio._core"):
    package = sys.modules[name] = types.ModuleType(name)
    package.__path__ = [root + name.removeprefix("reactive_aio").replace(".", "/")]
for name in ("asyncio", "anyio", "trio", "uvloop"):
    sys.modules[name] = None
importlib.import_module("reactive_aio.rsocket.protocol.connection")
importlib.import_module("reactive_aio.rsocket.protocol.metadata")
"""


def test_the_protocol_imports_without_asyncio() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(ROOT)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
