"""Each connector is imported by itself, and names the extra that it needs."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from reactive_aio.errors import MissingExtra

ROOT = Path(__file__).parents[2]
CLIENTS = {
    "kafka": ("aiokafka", "kafka"),
    "mqtt": ("aiomqtt", "mqtt"),
    "nats": ("nats", "nats"),
    "postgres": ("asyncpg", "postgres"),
    "rabbitmq": ("aio_pika", "rabbitmq"),
    "redis_streams": ("redis", "redis"),
}


def test_each_module_is_listed_and_each_extra_is_one_of_the_package() -> None:
    folder = ROOT / "reactive_aio" / "connectors"
    assert sorted(CLIENTS) == sorted(p.stem for p in folder.glob("[a-z]*.py") if p.stem != "common")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {extra for _, extra in CLIENTS.values()} <= set(extras["optional-dependencies"])


@pytest.mark.slow
def test_without_its_client_a_module_names_the_extra() -> None:
    program = f"""
import sys
from importlib import import_module
import reactive_aio.connectors
for module, (client, extra) in {CLIENTS!r}.items():
    assert client not in sys.modules, "importing the package imports no client"
    sys.modules[client] = None
    try:
        import_module(f"reactive_aio.connectors.{{module}}")
    except ImportError as error:
        print(type(error).__name__, error.extra, f"reactive-aio[{{extra}}]" in str(error))
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    expected = [f"{MissingExtra.__name__} {extra} True" for _, extra in CLIENTS.values()]
    assert ended.stdout.splitlines() == expected
