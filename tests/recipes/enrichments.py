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
