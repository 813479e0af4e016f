"""The exception that stops a candidate that does not stop by itself."""


class StopCandidate(SystemExit):
    """Raised inside the candidate. ``except Exception`` does not catch it, nor does any loop.

    asyncio lets SystemExit out of a callback and out of the loop; a thread ends by it silently.
    """
