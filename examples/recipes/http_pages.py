# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio", "httpx>=0.27"]
# ///
"""HTTP: the elements of a list that a server divides into pages.

    python examples/recipes/http_pages.py 'https://api.example.org/orders?per_page=100' --first 500

A page is a JSON array, and its header `Link` names the next one (rel="next"). One page is read
ahead. Where a request fails, or the server is busy (429, 502, 503, 504), it is repeated: not before
the time that the server asks for in `Retry-After`, and without the pages before it. An answer such
as 404 fails the flow at once.
"""

import argparse
import asyncio
import sys
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import httpx

import reactive_aio as rx

BUSY: Final = (429, 502, 503, 504)


def from_pages(
    client: httpx.AsyncClient, url: str, *, retry: rx.RetryPolicy | None = None
) -> rx.Flow[Any]:
    """The elements of all pages from *url* on; *retry* is in place of `POLICY`."""

    def attempts() -> rx.Flow[list[Any]]:
        following: httpx.URL | None = httpx.URL(url)

        async def pages() -> AsyncGenerator[list[Any]]:
            nonlocal following
            while following is not None:
                response = await client.get(following)
                response.raise_for_status()
                yield elements_of(response)
                following = next_of(response)  # from where a repeated attempt continues

        return rx.from_aiter(pages).retry(retry or POLICY)

    return rx.defer(attempts).boundary(1).flat_map(lambda page: page)


def elements_of(response: httpx.Response) -> list[Any]:
    """The elements of a page."""
    elements: Any = response.json()
    if elements.__class__ is not list:
        raise ValueError(f"{response.url}: a page is a JSON array, not {type(elements).__name__}")
    return [each for each in elements if each is not None]  # None is not an element of a flow


def next_of(response: httpx.Response) -> httpx.URL | None:
    """The address of the next page; None after the last one."""
    link = response.links.get("next")
    return None if link is None else response.url.join(link["url"])


def is_worth_another_attempt(error: BaseException) -> bool:
    """Whether the connection has failed, or the server is busy."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code in BUSY
    wrong_url = isinstance(error, httpx.UnsupportedProtocol)
    return isinstance(error, httpx.TransportError) and not wrong_url


def requested_delay(error: BaseException) -> float | None:
    """How many seconds the server asks to wait; in the header they are a number, or a date."""
    if not isinstance(error, httpx.HTTPStatusError):
        return None
    given = error.response.headers.get("retry-after", "")
    if given.isdecimal():
        return float(given)
    try:
        return max(0.0, (parsedate_to_datetime(given) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None


# A page that arrives begins the attempts and the time again.
POLICY: Final = rx.RetryPolicy(
    attempts=None,
    within=300,
    delay=0.5,
    only=is_worth_another_attempt,
    retry_after=requested_delay,
    reset=True,
)


async def main(options: argparse.Namespace) -> None:
    """Print the first elements, without reading more pages than they need."""
    async with httpx.AsyncClient(timeout=30, follow_redirects=True) as client:
        async for element in from_pages(client, options.url).take(options.first):
            print(element)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("url", help="the first page")
    parser.add_argument("--first", type=int, default=1000, metavar="N", help="elements to print")
    options = parser.parse_args()
    try:
        asyncio.run(main(options))
    except (httpx.HTTPError, ValueError) as error:
        sys.exit(f"{options.url}: {error}")
