"""docs/commands.md has each command with all of its options."""

import argparse

from publishing.reference.commands import PAGE, commands, table, written

WRITE = "run python -m publishing.reference.commands"


def test_the_tables_are_up_to_date() -> None:
    page = PAGE.read_text("utf-8")
    assert page == written(page), WRITE


def test_each_command_has_a_section_with_a_table() -> None:
    page = PAGE.read_text("utf-8")
    for name in commands():
        assert f"\n## `python -m {name}`\n" in page, f"add a section about python -m {name}"
        assert f"<!-- options: {name} -->\n" in page, f"add the comment of its table, and {WRITE}"


def test_a_table_has_names_values_and_meanings() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("path", help="a file | a folder")
    parser.add_argument("--show", "-s", choices=["all", "none"], help="what to show")
    parser.add_argument("--once", action="store_true", help="look once")
    assert table(parser).splitlines()[3:] == [
        "| `PATH` | a file \\| a folder |",
        "| `--show, -s {all,none}` | what to show |",
        "| `--once` | look once |",
        "",
    ]
