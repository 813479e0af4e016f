"""What does a request with its response cost over RSocket, 64 of them in flight?"""

from .pairs import Case, RSocketQuestion

question = RSocketQuestion(
    "RSocket: request and response of 26 bytes, 64 in flight",
    64_000,
    [
        Case("raw asyncio, 32 bytes a frame, in batches", "raw", "many"),
        Case("raw asyncio, each answer written by itself", "raw --each", "many"),
        Case("raw asyncio, read into a buffer", "raw --buffer", "many"),
        Case("raw asyncio, each response awaited", "raw", "many-awaited"),
        Case("raw uvloop, in batches", "raw --uvloop", "many"),
        Case("`request_response`, 64 in flight", "ours", "many", 0.5, goal=1 / 0.2),
        Case("`request_response`, 64 in flight, to a coroutine function", "ours", "later", 0.5),
        Case("`request_response`, 64 in flight, the handler suspends once", "ours", "once", 0.5),
        Case("`request_response`, 64 in flight, uvloop", "ours --uvloop", "many", 0.5),
        Case("rsocket-js to itself", "js", "many", 0.5),
        Case("PyPI rsocket", "pypi", "many", 0.1),
    ],
)
