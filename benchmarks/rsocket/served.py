"""What does an RSocket stream cost that serves a plain ``Publisher``, compared with a Flow?"""

from .pairs import Case, RSocketQuestion

question = RSocketQuestion(
    "An RSocket stream of a plain `Publisher`",
    200_000,
    [
        Case("a Flow served", "ours", "stream"),
        # By rate: at least 0.6.
        Case("a plain `Publisher` served over RSocket (× a Flow)", "ours", "plain", goal=1 / 0.6),
        Case("PyPI rsocket, a synchronous publisher", "pypi", "stream", 0.05),
    ],
)
