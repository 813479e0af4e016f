"""The brake: stops a subject that would never stop by itself."""

__all__ = ("Brake",)


class Brake(SystemExit):
    """Raised inside the subject. No ``except Exception`` swallows it, and no loop or thread does.

    asyncio lets SystemExit through a callback and out of the loop; a thread ends by it silently.
    """
