"""Programs in processes of their own, without the time that Python and its imports take to start.

A process imports the modules that the programs need, once; for each program it is forked. The
program then runs and ends as usual: with its own arguments, folder, environment, standard streams
and threads, and with what the interpreter reports at its end.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from select import select
from signal import SIGKILL
from tempfile import TemporaryDirectory
from typing import Final

import pytest

__all__ = ("WarmPython",)

ROOT: Final = Path(__file__).parents[2]
TIMEOUT: Final = 50
"""Seconds for one program."""
# Reads one program for each line, and forks: the child leaves the loop and becomes the program.
_SERVER: Final = """
import importlib, json, os, runpy, sys, types
requests, answers = (os.fdopen(int(fd), mode) for fd, mode in zip(sys.argv[1:3], "rw"))
for name in sys.argv[3:]:
    importlib.import_module(name)
for line in requests:
    pid = os.fork()
    if pid == 0:
        break
    print(pid, file=answers, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), file=answers, flush=True)
else:
    sys.exit()
program = json.loads(line)
for each in requests, answers:
    each.close()
del requests, answers, each
os.chdir(program["folder"])
os.environ.clear()
os.environ.update(program["environment"])
for fd, path in enumerate(program["streams"]):
    os.dup2(os.open(path, os.O_RDWR), fd)
sys.argv = program["arguments"]
sys.path[:0] = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
if "module" in program:
    sys.path.insert(0, os.getcwd())
    runpy.run_module(program["module"], run_name="__main__", alter_sys=True)
else:
    sys.modules["__main__"] = types.ModuleType("__main__")
    exec(program["code"], vars(sys.modules["__main__"]))
"""


class WarmPython:
    """The process starts with the first program, and ends with `end`."""

    def __init__(self, *options: str, imports: Iterable[str]) -> None:
        self._command = [sys.executable, *options, "-c", _SERVER]
        self._imports = [*imports]
        self._process: subprocess.Popen[bytes] | None = None

    def end(self) -> None:
        if self._process is not None:
            os.close(self._requests)
            self._process.wait()
            os.close(self._answers)
            self._process = None

    def run_code(
        self,
        code: str,
        *arguments: str,
        folder: Path,
        environment: Mapping[str, str] = os.environ,
        standard_input: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run *code* as ``python -c`` does."""
        arguments = ("-c", *arguments)
        return self._run("code", code, arguments, folder, environment, standard_input)

    def run_module(
        self, module: str, *arguments: str, folder: Path
    ) -> subprocess.CompletedProcess[str]:
        """Run *module* as ``python -m`` does."""
        return self._run("module", module, (module, *arguments), folder, os.environ, "")

    def run_pytest(self, pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
        """Run the tests in the folder of *pytester*."""
        began = time.perf_counter()
        place = f"--basetemp={pytester.path / 'basetemp'}"
        ended = self.run_module("pytest", place, *arguments, folder=pytester.path)
        lines = ended.stdout.splitlines(), ended.stderr.splitlines()
        sys.stdout.write(ended.stdout)
        sys.stderr.write(ended.stderr)
        return pytest.RunResult(ended.returncode, *lines, time.perf_counter() - began)

    def _run(
        self,
        kind: str,
        what: str,
        arguments: tuple[str, ...],
        folder: Path,
        environment: Mapping[str, str],
        standard_input: str,
    ) -> subprocess.CompletedProcess[str]:
        if self._process is None:
            self._start()
        with TemporaryDirectory() as place:
            streams = [Path(place, name) for name in ("input", "output", "errors")]
            for stream, text in zip(streams, (standard_input, "", ""), strict=True):
                stream.write_text(text, "utf-8")
            program = {
                kind: what,
                "arguments": arguments,
                "folder": str(folder),
                "environment": {**environment},
                "streams": [*map(str, streams)],
            }
            os.write(self._requests, json.dumps(program).encode() + b"\n")
            pid = self._answer()
            try:
                status = self._answer()
            except TimeoutError:
                os.kill(pid, SIGKILL)
                self._answer()
                raise
            output, errors = (stream.read_text("utf-8") for stream in streams[1:])
        return subprocess.CompletedProcess(arguments, status, output, errors)

    def _start(self) -> None:
        (theirs, self._requests), (self._answers, ours) = os.pipe(), os.pipe()
        self._process = subprocess.Popen(
            [*self._command, str(theirs), str(ours), *self._imports],
            cwd=ROOT,
            pass_fds=(theirs, ours),
        )
        os.close(theirs)
        os.close(ours)

    def _answer(self) -> int:
        """The next line of the process."""
        line = b""
        while not line.endswith(b"\n"):
            if not select([self._answers], [], [], TIMEOUT)[0]:
                raise TimeoutError(f"a program did not end within {TIMEOUT} s")
            byte = os.read(self._answers, 1)
            if not byte:
                raise RuntimeError("the process that is forked for each program has ended")
            line += byte
        return int(line)
