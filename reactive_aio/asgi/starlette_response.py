"""Makes an endpoint a response of Starlette and FastAPI as well, if they are installed.

FastAPI encodes what a route returns as JSON unless it is an instance of their class `Response`.
"""

from functools import cache
from types import new_class
from typing import TypeVar

T = TypeVar("T")


@cache
def response_class(endpoint: type[T]) -> type[T]:
    """Return a subclass of *endpoint* and of Starlette's `Response`; without it, *endpoint*.

    Not `sys.modules`, which would make the class depend on the order of imports: an endpoint may
    be made before its framework is imported.
    """
    try:
        from starlette.responses import Response
    except ImportError:
        return endpoint
    if issubclass(endpoint, Response):
        return endpoint
    members = {
        "__module__": endpoint.__module__,
        "__qualname__": endpoint.__qualname__,
        "__doc__": endpoint.__doc__,
    }
    bases = (endpoint, Response)
    return new_class(endpoint.__name__, bases, exec_body=lambda space: space.update(members))
