"""The whole vocabulary, as the kit's generator wants it."""

from typing import Final

from reactive_aio.tck.model.consumers import CONSUMERS as OF_THE_KIT
from reactive_aio.tck.model.vocabulary import Consumer, Vocabulary
from tests.model.operators import OPERATORS, WITH_SMALL_BOUNDS
from tests.model.run import ModelRun
from tests.model.sources import HOLDING_NOTHING, SOURCES

__all__ = ("CONSUMERS", "VOCABULARY")

CONSUMERS: Final[dict[str, Consumer]] = {
    **OF_THE_KIT,
    "to_anyio": Consumer("assert await run.sent({flow}.map(run.deliver)) == run.received"),
}
ONLY_EXCEPTIONS: Final = frozenset(
    (
        "error",
        "map_async: skips",
        "on_error_complete",
        "on_error_map",
        "on_error_resume",
        "on_error_resume: a function",
        "on_error_return",
        "restart",
        "retry",
    )
)
HEADER: Final = """\
import builtins
import operator
from contextlib import suppress

import reactive_aio as r
from reactive_aio.errors import TooManyElements
from reactive_aio.tck.model.expected import Expected
from reactive_aio.tck.model.judge import check_alone
from reactive_aio.testing import Token
from tests.model.run import ModelRun, PipelineError

"""

VOCABULARY: Final = Vocabulary(
    SOURCES,
    OPERATORS,
    CONSUMERS,
    HEADER,
    ModelRun,
    "ModelRun",
    with_small_bounds=WITH_SMALL_BOUNDS,
    holding_nothing=HOLDING_NOTHING,
    only_exceptions=ONLY_EXCEPTIONS,
    changed_by_a_drain=frozenset(("default_if_empty", "switch_if_empty", "expand")),
)
