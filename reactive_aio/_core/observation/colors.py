"""The text of `explain` in the colors of a terminal."""

import os
import re
import sys
from typing import Final

__all__ = ("colored", "is_terminal_colored")

_RESET: Final = "\x1b[0m"
_BOLD, _DIM, _RED, _YELLOW, _CYAN = (f"\x1b[{code}m" for code in (1, 2, 31, 33, 36))
_LINE: Final = re.compile(
    r"(?P<tree>(?:[├│] )*)(?P<head>island \((?P<mode>[^)]*)\): |║ )?(?P<rest>.*)"
)
_OPERATOR: Final = re.compile(r"(?:(?<=^)|(?<=→ ))[\w ]+")


def is_terminal_colored() -> bool:
    """Whether the standard output is a terminal that shows colors."""
    is_refused = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return not is_refused and sys.stdout.isatty()


def colored(text: str) -> str:
    """*text* with names of operators bold, what holds elements yellow, the unbounded red."""
    *lines, bound = text.split("\n")
    return "\n".join([*map(_colored_line, lines), _colored_bound(bound)])


def _colored_line(line: str) -> str:
    found = _LINE.fullmatch(line)
    if found is None or line.startswith("    "):
        return f"{_DIM}{line}{_RESET}"
    tree = f"{_DIM}{found['tree']}{_RESET}" if found["tree"] else ""
    head, rest = found["head"], found["rest"]
    if head is None:
        return f"{tree}{_DIM}{rest}{_RESET}"
    if head.startswith("║"):
        return f"{tree}{_RED if rest.endswith(', unbounded') else _YELLOW}{head}{rest}{_RESET}"
    rest = _OPERATOR.sub(lambda name: f"{_BOLD}{name[0]}{_RESET}", rest)
    rest = rest.replace(" → ", f" {_DIM}→{_RESET} ")
    return f"{tree}{_CYAN}island{_RESET} {_DIM}({found['mode']}){_RESET}: {rest}"


def _colored_bound(line: str) -> str:
    return f"{_RED if line.startswith('unbounded') else _YELLOW}{line}{_RESET}"
