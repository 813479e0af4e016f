"""Routes: precedence, overlap, and the errors of invalid ones."""

import pytest

from reactive_aio.rsocket import Router


def test_routes_without_braces_take_precedence() -> None:
    router = Router()
    found: list[str] = []

    @router.route("a.{x}")
    def one(x: str) -> None:
        found.append(f"braces {x}")

    @router.route("a.b")
    def none() -> None:
        found.append("written out")

    @router.route("{x}/{y}")
    def two(x: str, y: str) -> None:
        found.append(f"{y} {x}")

    for route in ("a.b", "a.c", "1/2"):
        served = router.find(route)
        assert served is not None
        served[0](None, served[1])  # type: ignore[arg-type]
    assert found == ["written out", "braces c", "2 1"]
    assert router.find("a.b.c") is None
    assert router.find("") is None


def pair(x: str, y: str) -> str:
    return x + y


def test_an_invalid_route_is_refused_at_registration() -> None:
    router = Router()
    router.route("a")(lambda: 1)
    with pytest.raises(ValueError, match="is there already"):
        router.route("a")
    with pytest.raises(ValueError, match="has no x"):
        router.route("b.{x}")(lambda: 1)
    with pytest.raises(ValueError, match="unknown y"):
        router.route("c.{x}")(pair)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("a.{x}", "a.{y}"),
        ("{x}.b", "a.{y}"),
        ("v{x}", "{name}"),
        ("{x}a{y}", "{z}"),
    ],
)
def test_overlapping_routes_are_refused(one: str, two: str) -> None:
    def serves(**names: str) -> None: ...

    router = Router()
    router.route(one)(lambda x="", y="": 1)
    with pytest.raises(ValueError, match="both fit"):
        router.route(two)
    del serves


def test_routes_that_do_not_overlap_are_accepted() -> None:
    router = Router()
    for pattern in ("a.{x}", "b.{x}", "a.{x}.{y}", "{x}/{y}", "a.b"):
        router.route(pattern)(lambda x="", y="": 1)
    for wrong in ("", "a.{x}.{x}", "{", "a{}", "x" * 256):
        with pytest.raises(ValueError, match="route"):
            router.route(wrong)
    assert router.find("a.b.c") is not None
    assert router.find("a/b") is not None
