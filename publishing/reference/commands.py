"""The tables of options in docs/commands.md, made of the parsers of the commands.

python -m publishing.reference.commands        # writes them
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, cast

import reactive_aio.observe.command
import reactive_aio.rsocket.command
import reactive_aio.tck.command

__all__ = ("PAGE", "commands", "written")

PAGE: Final = Path(__file__).parents[2] / "docs" / "commands.md"
_PARSERS: Final = {
    "reactive_aio": reactive_aio.observe.command._parser,
    "reactive_aio.rsocket": reactive_aio.rsocket.command._parser,
    "reactive_aio.tck": reactive_aio.tck.command._parser,
}
_TABLE: Final = re.compile(
    r"(<!-- options: (.+?) -->\n).*?(?=<!-- end of the options -->)", re.DOTALL
)


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command, by its words after ``python -m``."""
    found: dict[str, argparse.ArgumentParser] = {}
    for module, parser in _PARSERS.items():
        below = dict(_subcommands(parser()))
        found |= {f"{module} {name}": each for name, each in below.items()}
        if not below:
            found[module] = parser()
    return found


def written(page: str) -> str:
    """*page* with the tables as they should be."""
    return _TABLE.sub(lambda found: found[1] + table(commands()[found[2]]), page)


def table(parser: argparse.ArgumentParser) -> str:
    """The table of the arguments and options of *parser*."""
    rows = [f"| `{name}` | {meaning} |\n" for name, meaning in _options(parser)]
    return "\n" + "| option | meaning |\n|---|---|\n" + "".join(rows) + "\n"


def _options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    formatter = parser._get_formatter()
    for action in parser._actions:
        if "--help" not in action.option_strings:
            default = action.metavar or action.dest.upper()
            value = formatter._format_args(action, cast("str", default))
            names = ", ".join(action.option_strings)
            shown = " ".join(filter(None, [names, value.strip("[]") if not names else value]))
            meaning = (action.help or "") % {"default": action.default, "prog": parser.prog}
            yield shown, meaning.replace("|", "\\|")


def _subcommands(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            parsers = cast("argparse._SubParsersAction[argparse.ArgumentParser]", action)
            yield from parsers.choices.items()


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
