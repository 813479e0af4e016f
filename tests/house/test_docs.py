"""The documents are true: their code runs, and their commands and links exist.

A block opened by ```` ```python ```` is run as a program of its own, with ``await`` at top level
allowed, warnings as errors, and what it prints compared with the ```` ```output ```` block right
after it, if there is one. Blocks opened by ```` ```python spark ```` run with the Spark tests. The
blocks of docs/operators.md run in virtual time with the tests of its generator, and as programs
with ``--thorough``. In blocks of shell, the sessions and files named must exist.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.harness.one_run import in_one_run
from tests.harness.warm_python import WarmPython

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")]
)
SHELL = {"sh", "bash", "console", "shell"}
FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1``` *$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)|!\[[^\]\n]*\]\(([^)\s]+)\)")
SESSIONS_CALLED = re.compile(r"nox(?:file\.py)?\b.*? -s ((?:\w+ ?)+)")
PATHS = re.compile(r"(?<![\w/.])((?:\.ci|examples|docs|benchmarks|tests)/[\w./-]+)")
# Their readers save a program and run it; those of the other documents know where `await` belongs.
FOR_NEWCOMERS = (
    "README.md", "docs/index.md", "docs/concepts/", "docs/guides/", "docs/how-to/", "docs/tutorial/"
)  # fmt: skip
# What an extra installs, where a document may import it.
EXTRAS = {
    "aio_pika": "rabbitmq", "aiokafka": "kafka", "httpx": "httpx", "pyspark": "spark",
    "uvloop": "uvloop", "websockets": "websockets",
}  # fmt: skip
SLOW = re.compile(r"^Executing <.*> took [\d.]+ seconds\n", re.MULTILINE)

# Runs a block as a program, so that its coroutines, threads and handlers end with it.
RUNNER = """
import ast, asyncio, inspect, linecache, sys
source, name = sys.stdin.read(), sys.argv[1]
linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
code = compile(source, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
scope = {"__name__": "__main__"}
if code.co_flags & inspect.CO_COROUTINE:
    async def main():
        await eval(code, scope)
    asyncio.run(main())
else:
    exec(code, scope)
"""


TEST_OF_AN_HOUR = """
import asyncio, pytest

@pytest.mark.asyncio
async def test_an_hour_takes_no_time():
    await asyncio.sleep(3600)
    assert asyncio.get_running_loop().time() == 3600
"""


@dataclass(frozen=True)
class Block:
    document: Path
    line: int
    info: tuple[str, ...]
    text: str
    output: str | None

    def __str__(self) -> str:
        return f"{self.document.relative_to(ROOT)}:{self.line}"


def blocks(document: Path) -> Iterator[Block]:
    text = document.read_text("utf-8")
    found = list(FENCE.finditer(text))
    for fence, after in zip_longest(found, found[1:]):
        output = None
        if after and after[2].strip() == "output" and not text[fence.end() : after.start()].strip():
            output = after[3]
        line = text.count("\n", 0, fence.start()) + 1
        yield Block(document, line, tuple(fence[2].split()), unindent(fence), output)


def unindent(fence: re.Match[str]) -> str:
    return re.sub(f"^{fence[1]}", "", fence[3], flags=re.MULTILINE)


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))


BLOCKS = [block for document in DOCUMENTS for block in blocks(document)]
# Its blocks are run in one process by the tests of the generator that writes it.
GENERATED_PAGE = ROOT / "docs" / "operators.md"
TAKES_SECONDS = ("check_operator(",)
"""What a program calls that tries hundreds of flows."""


def is_thorough(block: Block) -> bool:
    return block.document == GENERATED_PAGE or any(each in block.text for each in TAKES_SECONDS)


PROGRAMS = [
    pytest.param(
        block,
        marks=[pytest.mark.thorough] if is_thorough(block) else [],
    )
    for block in BLOCKS
    if block.info[:1] == ("python",) and block.info[1:] not in (("spark",), ("excerpt",))
]
EXCERPTS = [block for block in BLOCKS if block.info in (("python", "excerpt"), ("dockerfile",))]
SHELLS = [block for block in BLOCKS if block.info[:1] and block.info[0] in SHELL]


python = WarmPython(
    "-X", "dev", "-W", "error", imports=["ast", "inspect", "linecache", "reactive_aio"]
)


@pytest.fixture(scope="module", autouse=True)
def end_python() -> Iterator[None]:
    yield
    python.end()


@pytest.mark.slow
@pytest.mark.parametrize("block", PROGRAMS, ids=str)
def test_code_runs(block: Block, tmp_path: Path) -> None:
    assert block.info == ("python",)
    ended = python.run_code(
        RUNNER,
        "step.py" if block.document.parent.name == "tutorial" else "program.py",
        standard_input=block.text,
        folder=tmp_path,
        environment={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert ended.returncode == 0, ended.stderr
    # Lost errors are reported there only. So is a busy machine.
    assert SLOW.sub("", ended.stderr) == ""
    if block.output is not None:
        assert ended.stdout == block.output


@pytest.mark.parametrize("block", EXCERPTS, ids=str)
def test_an_excerpt_is_in_the_example_that_its_page_is_about(block: Block) -> None:
    excerpt = [line.strip() for line in block.text.splitlines()]
    links = re.findall(r"\]\((\.\./\.\./examples/[\w/]+)\)", block.document.read_text("utf-8"))
    folders = [block.document.parent / link for link in links]
    for path in (path for folder in folders for path in folder.rglob("*")):
        if path.suffix == ".py" or path.name == "Dockerfile":
            lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
            if any(lines[at : at + len(excerpt)] == excerpt for at in range(len(lines))):
                return
    pytest.fail(f"{block} is in no file of {links}")


@pytest.mark.slow
def test_conftest_of_the_page_on_tests_gives_a_test_virtual_time(tmp_path: Path) -> None:
    page = ROOT / "docs" / "how-to" / "testing.md"
    [block] = [each for each in blocks(page) if "def pytest_asyncio_loop_factories" in each.text]
    (tmp_path / "conftest.py").write_text(block.text, "utf-8")
    (tmp_path / "test_hours.py").write_text(TEST_OF_AN_HOUR, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout
    assert "1 passed" in ended.stdout


@in_one_run
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_program_is_complete_or_the_document_says_how_to_run_it(document: Path) -> None:
    incomplete = [
        str(block)
        for block in blocks(document)
        if block.info in (("python",), ("python", "spark")) and not is_complete(block.text)
    ]
    if str(document.relative_to(ROOT)).startswith(FOR_NEWCOMERS):
        assert not incomplete, "await belongs in main(), which asyncio.run(main()) runs"
    elif incomplete:
        text = document.read_text("utf-8")
        assert "python -m asyncio" in text or "`await` at the top level" in text, incomplete


def is_complete(code: str) -> bool:
    try:
        compile(code, "program.py", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize(
    "document",
    sorted(
        path for folder in ("guides", "how-to") for path in (ROOT / "docs" / folder).glob("*.md")
    ),
    ids=lambda path: path.name,
)
def test_a_how_to_says_what_to_install(document: Path) -> None:
    installed = " ".join(re.findall(r"pip install (.*)", document.read_text("utf-8")))
    for block in blocks(document):
        if block.info[:1] == ("python",):
            for package in packages_of(block.text):
                extra = EXTRAS.get(package, package)
                assert re.search(rf"\b{package}\b|\[.*\b{extra}\b.*\]", installed), str(block)


def packages_of(code: str) -> set[str]:
    """The packages that *code* needs beside the core."""
    imported: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
    found = {name.partition(".")[0] for name in imported}
    if any(name.startswith("reactive_aio.spark") for name in imported):
        found.add("pyspark")
    return found - sys.stdlib_module_names - {"reactive_aio"}


@pytest.mark.parametrize("block", SHELLS, ids=str)
def test_commands_exist(block: Block) -> None:
    sessions = set(re.findall(r"^def (\w+)\(session", (ROOT / "noxfile.py").read_text(), re.M))
    for line in block.text.splitlines():
        if called := SESSIONS_CALLED.search(line.partition(" -- ")[0]):
            assert set(called[1].split()) <= sessions
        for path in PATHS.findall(line):
            assert (ROOT / path).exists(), path


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_exist(document: Path) -> None:
    for link in LINK.finditer(without_code(document.read_text("utf-8"))):
        target = link[1] or link[2]
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (document.parent / path) if path else document
        assert file.exists(), target
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file.read_text("utf-8")), target


@cache
def anchors(text: str) -> set[str]:
    """The names that forges give to headings."""
    headings = re.findall(r"^#+ +(.*?) *#*$", FENCE.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


class TestFaults:
    """Faulty documents fail."""

    def test_blocks_have_their_line_info_and_output(self, tmp_path: Path) -> None:
        document = tmp_path / "page.md"
        document.write_text("a\n\n  ```python spark\n  1\n  ```\n\n```output\n2\n```\n", "utf-8")
        block = Block(document, 3, ("python", "spark"), "1\n", "2\n")
        assert next(blocks(document)) == block

    @pytest.mark.parametrize(
        ("code", "output"),
        [
            ("raise ValueError", None),
            ("await missing()", None),
            ("import warnings; warnings.warn('x')", None),
            ("import asyncio\nasync def f(): pass\nf()", None),
            ("import asyncio\nawait asyncio.sleep(0)\nprint(1)", "2\n"),
        ],
    )
    def test_code_that_fails_or_prints_something_else(
        self, code: str, output: str | None, tmp_path: Path
    ) -> None:
        with pytest.raises(AssertionError):
            test_code_runs(Block(ROOT / "README.md", 1, ("python",), code, output), tmp_path)

    @pytest.mark.parametrize(
        "command",
        ["nox -s missing", "python3 noxfile.py -s tests missing", "python examples/no.py"],
    )
    def test_a_missing_command(self, command: str) -> None:
        with pytest.raises(AssertionError):
            test_commands_exist(Block(ROOT / "README.md", 1, ("sh",), command, None))

    @pytest.mark.parametrize("link", ["no.md", "#no", "../no/", "page.md#no"])
    def test_a_dead_link(self, link: str, tmp_path: Path) -> None:
        document = tmp_path / "page.md"
        document.write_text(f"# A `page`, here\n[x](#a-page-here) [y]({link})\n", "utf-8")
        with pytest.raises(AssertionError, match=re.escape(link)):
            test_links_exist(document)
