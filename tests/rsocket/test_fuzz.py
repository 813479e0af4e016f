"""A short run of the fuzzer, the same each time."""

import random

import pytest

from . import fuzz
from .test_codec import GOLDEN

pytestmark = pytest.mark.slow


def test_a_connection_neither_breaks_nor_grows() -> None:
    frames = [frame for frame, _ in GOLDEN.values()]
    assert fuzz.fuzz(frames, random.Random(1), runs=600) > 500


def test_the_fuzzer_would_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "MOST_WAITING", 100)
    with pytest.raises(AssertionError):
        fuzz.fuzz([frame for frame, _ in GOLDEN.values()], random.Random(1), runs=600)
