"""Routes of a socket: a `Router`, or a mapping from names to flows or handlers."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..._core.arguments import require_callable
from ...coerce import to_flow
from ...rsocket.routing import Router
from ..http_endpoint import is_flow

if TYPE_CHECKING:
    from ...flow import Flow


def to_router(routes: Router | Mapping[str, Any], what: str) -> Router:
    """Return the router of *routes*, which are those of the function *what*."""
    if isinstance(routes, Router):
        return routes
    router = Router()
    for pattern, served in routes.items():
        if is_flow(served):
            router.route(pattern)(_handler(to_flow(served, name=what)))
        else:
            require_callable(what, f"routes[{pattern!r}]", served)
            router.route(pattern)(served)
    return router


def _handler(flow: "Flow[Any]") -> "Callable[[], Flow[Any]]":
    return lambda: flow
