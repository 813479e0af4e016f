"""Pages over HTTP, with a server on the loop."""

import json
from collections.abc import AsyncGenerator
from dataclasses import replace

import httpx
import pytest
from recipes.http_pages import POLICY, from_pages, requested_delay

from tests.recipes.http_server import Answer, Request, http_server


@pytest.fixture
async def client() -> AsyncGenerator[httpx.AsyncClient]:
    # Without TLS, no certificates are read.
    async with httpx.AsyncClient(verify=False, trust_env=False) as opened:
        yield opened


class Pages:
    """Three pages of two elements; *failures* are answered first, each instead of a page."""

    def __init__(self, *failures: Answer | None, before: int = 2) -> None:
        self.requested: list[str] = []
        self._failures = [*failures]
        self._before = before

    def __call__(self, request: Request) -> Answer | None:
        self.requested.append(request.path)
        number = int(request.path.rpartition("=")[2])
        if number == self._before and self._failures:
            return self._failures.pop(0)
        link = {"link": f'<?page={number + 1}>; rel="next"'} if number < 3 else {}
        return Answer(json.dumps([number * 10, number * 10 + 1]).encode(), headers=link)


AT_ONCE = replace(POLICY, delay=0)
ALL = [10, 11, 20, 21, 30, 31]


async def test_elements_of_all_pages_follow_each_other(client: httpx.AsyncClient) -> None:
    pages = Pages()
    async with http_server(pages) as url:
        assert await from_pages(client, f"{url}/list?page=1").to_list(limit=9) == ALL
    assert pages.requested == ["/list?page=1", "/list?page=2", "/list?page=3"]


async def test_no_page_is_read_that_is_not_needed(client: httpx.AsyncClient) -> None:
    pages = Pages()
    async with http_server(pages) as url:
        assert await from_pages(client, f"{url}/?page=1", retry=AT_ONCE).take(2).to_list(
            limit=9
        ) == [10, 11]
    assert len(pages.requested) <= 2, "one is read ahead"


async def test_a_failure_repeats_its_page_and_none_before_it(client: httpx.AsyncClient) -> None:
    pages = Pages(None, Answer(status=503, headers={"retry-after": "0"}), Answer(status=429))
    async with http_server(pages) as url:
        assert await from_pages(client, f"{url}/?page=1", retry=AT_ONCE).to_list(limit=9) == ALL
    assert [path[-1] for path in pages.requested] == ["1", "2", "2", "2", "2", "3"]


async def test_an_answer_that_does_not_change_fails_the_flow(client: httpx.AsyncClient) -> None:
    pages = Pages(Answer(status=404))
    async with http_server(pages) as url:
        with pytest.raises(httpx.HTTPStatusError, match="404"):
            await from_pages(client, f"{url}/?page=1", retry=AT_ONCE).run()
    assert len(pages.requested) == 2


async def test_a_page_that_is_not_an_array_fails_the_flow(client: httpx.AsyncClient) -> None:
    pages = Pages(Answer(b'{"error": "no"}'))
    async with http_server(pages) as url:
        with pytest.raises(ValueError, match="a page is a JSON array, not dict"):
            await from_pages(client, f"{url}/?page=1", retry=AT_ONCE).run()


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("7", 7.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("soon", None),
        ("", None),
    ],
)
def test_the_delay_that_a_server_asks_for(header: str, seconds: float | None) -> None:
    request = httpx.Request("GET", "http://server")
    response = httpx.Response(503, headers={"retry-after": header}, request=request)
    error = httpx.HTTPStatusError("busy", request=request, response=response)
    assert requested_delay(error) == seconds


def test_other_errors_ask_for_no_delay() -> None:
    assert requested_delay(httpx.ConnectError("no")) is None
