"""The programs of documents, with what they print according to the document."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ("Program", "programs")

_PROGRAM: Final = re.compile(
    r"^```python\n(?P<code>(?:(?!```).*\n)*)```\n\n```output\n(?P<output>(?:(?!```).*\n)*)```$",
    re.MULTILINE,
)
_FILE: Final = "step.py"
"""The name under which the tutorial asks its readers to save a program."""
_TIMEOUT: Final = 60.0


@dataclass(frozen=True, slots=True)
class Program:
    """A program of a document."""

    name: str
    code: str
    output: str

    def problem(self, python: Path, folder: Path) -> str:
        """Why *python* does not print what it should; empty if it does.

        The program is a file in *folder*, as it is for a reader: errors show lines of it.
        """
        file = folder / _FILE
        file.write_text(self.code, "utf-8")
        command = [str(python), "-I", "-X", "dev", "-W", "error", str(file)]
        try:
            ended = subprocess.run(
                command, cwd=folder, capture_output=True, encoding="utf-8", timeout=_TIMEOUT
            )
        except subprocess.TimeoutExpired:
            return f"it did not end within {_TIMEOUT:.0f} s"
        if ended.returncode:
            return f"exit status {ended.returncode}\n{ended.stderr}"
        printed = ended.stdout.replace(str(file), _FILE)
        if printed != self.output:
            return f"it printed\n{printed}\ninstead of\n{self.output}"
        return ""


def programs(folder: Path) -> list[Program]:
    """The programs with outputs in the documents of *folder*."""
    return [
        Program(f"{path.name}:{text.count(chr(10), 0, found.start()) + 1}", *found.groups())
        for path in sorted(folder.glob("*.md"))
        for text in [path.read_text("utf-8")]
        for found in _PROGRAM.finditer(text)
    ]
