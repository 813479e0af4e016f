"""What does a request with its response cost over RSocket, one at a time?"""

from .pairs import Case, RSocketQuestion

question = RSocketQuestion(
    "RSocket: request and response of 26 bytes, one at a time",
    3_200,
    [
        Case("raw asyncio, 32 bytes a frame", "raw", "one"),
        Case("raw asyncio, read into a buffer", "raw --buffer", "one"),
        Case("raw asyncio, each response awaited", "raw", "one-awaited"),
        Case("raw uvloop", "raw --uvloop", "one"),
        Case("`request_response`, one at a time", "ours", "one", goal=1 / 0.75),
        Case("`request_response`, one at a time, uvloop", "ours --uvloop", "one"),
        Case("rsocket-js to itself", "js", "one"),
        Case("PyPI rsocket", "pypi", "one", 0.5),
    ],
)
