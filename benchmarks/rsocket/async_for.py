"""What does ``async for`` over an RSocket stream cost, compared with its own ``on_next``?"""

from .pairs import Case, RSocketQuestion

question = RSocketQuestion(
    "An RSocket stream by `async for`",
    200_000,
    [
        Case("RSocket stream → `on_next`, requests of 256 and 192", "ours", "stream"),
        # By rate: at least half.
        Case(
            "`async for` over an RSocket stream (× `on_next`)",
            "ours",
            "async_for",
            0.5,
            goal=1 / 0.5,
        ),
        Case("PyPI rsocket → `on_next`, `StreamFromGenerator`", "pypi", "generated", 0.05),
    ],
)
