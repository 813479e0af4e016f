"""The servers of the tests: what is missing is skipped, and fails in CI."""

import pytest

from tests.harness.servers import find


def test_a_server_that_is_missing_skips_its_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no-such is not installed: apt install pack"):
        find("no-such", "package")


def test_in_ci_that_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=r"no-such is not installed.*in CI"):
        find("no-such", "package")
