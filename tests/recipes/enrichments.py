"""Functions for `--enrich` of the service: slow, and some fail."""

import asyncio
import os
import signal

_seen: set[str] = set()


async def moody(payload: str) -> str:
    """Fail always for payloads with ``never``, and once in a process for those with ``later``."""
    await asyncio.sleep(0.002)
    if "never" in payload:
        raise ValueError("it never succeeds")
    if "later" in payload and payload not in _seen:
        _seen.add(payload)
        raise ConnectionError("not now")
    return payload.upper()


async def lethal(payload: str) -> str:
    """End the process at once for payloads with ``kill``, as a crash of native code does."""
    await asyncio.sleep(0.002)
    if "kill" in payload:
        os.kill(os.getpid(), signal.SIGKILL)
    return payload.upper()


def is_up() -> bool:
    """Whether what `down` needs has begun to answer."""
    return os.path.exists(os.environ["UP"])


async def down(payload: str) -> str:
    """Fail for every payload, until the file exists that the variable UP names."""
    await asyncio.sleep(0.002)
    if not is_up():
        raise RuntimeError("503 Service Unavailable")
    if "never" in payload:
        raise RuntimeError("503 for this one, always")
    return "\ud800" if "refused" in payload else payload.upper()
