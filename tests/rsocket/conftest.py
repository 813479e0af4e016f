"""Fixtures for the RSocket tests."""

import subprocess
from pathlib import Path
from shutil import which

import pytest

from tests.node.packages import unavailable


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate and its key, in one file."""
    if which("openssl") is None:
        unavailable("openssl, which makes the certificate, is not installed")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
    names = "-subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1"
    files = ["-keyout", str(path), "-out", f"{path}.crt"]
    subprocess.run([*command.split(), *names.split(), *files], check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path
