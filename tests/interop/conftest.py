"""The peers; each is started once."""

from collections.abc import Iterator

import pytest

from tests.interop.node import JsPeer, running
from tests.node.packages import Packages


@pytest.fixture(scope="session")
def alpha(rsocket_js: Packages) -> Iterator[JsPeer]:
    """rsocket-js 1.0.0-alpha.3; its server over TCP resumes sessions."""
    with running(rsocket_js, "alpha.js", "resume") as peer:
        yield peer


@pytest.fixture(scope="session")
def legacy(rsocket_js_legacy: Packages) -> Iterator[JsPeer]:
    """rsocket-js 0.0.27."""
    with running(rsocket_js_legacy, "legacy.js") as peer:
        yield peer
