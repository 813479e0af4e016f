# /// script
# requires-python = ">=3.11"
# dependencies = ["reactive-aio", "httpx>=0.28"]
# ///
"""Crawl a site: each page once, eight requests at a time, within a rate.

    python examples/crawler.py [--url URL] [--pages N]

The addresses that a page links to go into a processor, which the same flow reads; while 10,000 of
them wait, more are left out. Without a URL, it crawls a site of 60 pages that it serves itself.
"""

import argparse
import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urljoin

import httpx

import reactive_aio as rx

LINK = re.compile(r'href="([^"#]+)"')


async def crawl(start: str, most: int) -> dict[str, int]:
    """The pages that can be reached from *start*, at most so many, and the length of each."""
    found: dict[str, int] = {}
    known, open_pages = {start}, 1
    addresses = rx.UnicastProcessor[str](capacity=10_000, name="addresses")
    addresses.try_emit(start)
    async with httpx.AsyncClient(timeout=10) as http:
        policy = rx.RetryPolicy(attempts=3, only=httpx.TransportError)
        rate = rx.RateLimit(200, per=1)
        pages = addresses.map_async(http.get, concurrency=8, retry=policy, limiter=rate).take(most)
        async for page in pages:
            found[str(page.url)] = len(page.content)
            links = {urljoin(str(page.url), link) for link in LINK.findall(page.text)}
            for link in sorted(link for link in links - known if link.startswith(start)):
                if addresses.try_emit(link):
                    known.add(link)
                    open_pages += 1
            open_pages -= 1
            if not open_pages:
                addresses.complete()
    return found


@asynccontextmanager
async def sample_site(pages: int) -> AsyncGenerator[str]:
    """Serve pages, of which each links to three others."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = int((await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].strip(b"/") or 0)
        linked = range(number * 3 + 1, min(number * 3 + 4, pages))
        links = "".join(f'<a href="/{each}">' for each in linked)
        writer.write(f"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{links}".encode())
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


async def main(url: str | None = None, pages: int = 100) -> None:
    """Crawl, and print what was found."""
    if url is not None:
        found = await crawl(url, pages)
    else:
        async with sample_site(60) as url:
            found = await crawl(url, pages)
    print(f"{len(found)} pages, {sum(found.values())} bytes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--url")
    parser.add_argument("--pages", type=int, default=100)
    asyncio.run(main(**vars(parser.parse_args())))
