"""What a driver needs of a transport."""

from typing import Any, Protocol


class Transport(Protocol):
    """An object that moves bytes.

    It calls the driver's `data_received`, `pause_writing`, `resume_writing`, and once
    `connection_lost`.
    """

    def write(self, data: bytes, /) -> object:
        """Send *data*; never blocks."""
        ...

    def pause_reading(self) -> object: ...
    def resume_reading(self) -> object: ...

    def close(self) -> object:
        """Send what was written, then end."""
        ...

    def abort(self) -> object:
        """End now."""
        ...

    def get_extra_info(self, name: str) -> Any:
        """The information that asyncio calls *name*; None if it is not available."""
        ...
