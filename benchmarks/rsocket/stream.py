"""What does an element of a stream cost over RSocket, with requests of 256, then 192?"""

from .pairs import Case, RSocketQuestion

question = RSocketQuestion(
    "RSocket: a stream of 26 bytes an element, credit 256 and 192",
    400_000,
    [
        Case("raw asyncio, 32 bytes a frame, in batches", "raw", "stream"),
        Case("raw asyncio, one write a frame", "raw --each", "stream", 0.5),
        Case("raw asyncio, read into a buffer", "raw --buffer", "stream"),
        Case("raw asyncio, credit 256 and 192", "raw --credit", "stream", 0.5),
        Case("raw uvloop, in batches", "raw --uvloop", "stream"),
        Case(
            "RSocket stream → `on_next`, requests of 256 and 192",
            "ours",
            "stream",
            0.5,
            goal=1 / 0.4,
        ),
        Case("RSocket stream, `boundary(256)`", "ours", "boundary", 0.5),
        Case("`async for` over an RSocket stream, `prefetch=256`", "ours", "iterate", 0.5),
        Case("RSocket stream, unbounded demand", "ours", "unbounded", 0.5),
        Case(
            "RSocket stream → `on_next`, requests of 256 and 192, uvloop",
            "ours --uvloop",
            "stream",
            0.5,
        ),
        Case("rsocket-js to itself", "js", "stream", 0.5),
        Case("PyPI rsocket, a synchronous publisher", "pypi", "stream", 0.05),
        Case("PyPI rsocket, StreamFromGenerator", "pypi", "generated", 0.05),
    ],
)
