"""The site as a whole: built with warnings as errors, and read in a browser without a network."""

import mimetypes
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Literal

import pytest
from playwright.sync_api import Page, Route, sync_playwright

from publishing.project import ROOT
from tests.asgi.browser import OPTIONS, find_chromium

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

ORIGIN = "http://site.test"
BROKEN_IMAGES = "[...document.images].filter(each => !each.naturalWidth).map(each => each.src)"


Site = dict[str, bytes]
"""The content of each file, by its path."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """The built site."""
    folder = tmp_path_factory.mktemp("site")
    ended = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def path_of(address: str) -> str:
    path = address.removeprefix(f"{ORIGIN}/").partition("?")[0]
    return f"{path}index.html" if path.endswith("/") or not path else path


@contextmanager
def reading(site: Site, scheme: Literal["light", "dark"] = "light") -> Generator[Page]:
    """A page of a browser that has the files of *site*, and no network."""
    problems: list[str] = []
    # Files are searched for here, since the browser's calls run in an event loop.
    chromium = find_chromium()
    mimetypes.init()

    def answer(route: Route) -> None:
        address = route.request.url
        path = path_of(address)
        if address.startswith(ORIGIN) and path in site:
            route.fulfill(body=site[path], content_type=mimetypes.guess_type(path)[0])
        else:
            problems.append(f"not in the site: {address}")
            route.abort()

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=[*OPTIONS, "--disable-dev-shm-usage"]
        )
        page = browser.new_page(color_scheme=scheme)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.route("**/*", answer)
        yield page
        browser.close()
    assert not problems, "\n".join(problems)


@pytest.mark.timeout(900)
def test_every_page_is_complete_without_a_network(site: Site) -> None:
    pages = sorted(path for path in site if path.endswith("index.html"))
    assert len(pages) > 80
    with reading(site) as page:
        page.set_viewport_size({"width": 400, "height": 900})
        for each in pages:
            page.goto(f"{ORIGIN}/{each.removesuffix('index.html')}")
            assert page.locator("h1").count() == 1, each
            assert page.evaluate(BROKEN_IMAGES) == [], each
            assert page.locator("a.md-footer__link").count() >= 1, f"{each} leads nowhere"
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, each


def test_text_is_set_in_the_font_of_the_site(site: Site) -> None:
    with reading(site) as page:
        page.goto(f"{ORIGIN}/why/")
        page.evaluate("document.fonts.ready.then(() => true)")
        assert page.evaluate("document.fonts.check('16px \"Inter Variable\"')")
        assert page.evaluate("getComputedStyle(document.body).fontFamily").startswith('"Inter')
    assert b"Open Font License" in site["fonts/inter-LICENSE.txt"]


def test_an_address_without_a_page_offers_a_search_for_its_words(site: Site) -> None:
    lost = {**site, "old/dead-letter/index.html": site["404.html"]}
    with reading(lost) as page:
        page.goto(f"{ORIGIN}/old/dead-letter/")
        assert page.locator(".lost input").input_value() == "dead letter"
        page.locator(".lost button").click()
        page.wait_for_url(f"{ORIGIN}/?q=dead+letter")
        page.locator(".md-search-result__link[href*=delivery]").first.wait_for()


QUERIES = """
dead letter: delivery guides/call-an-http-api
Retry-After: guides/call-an-http-api
backpressure: concepts/demand why operators/on_backpressure_buffer
concurrency limit: operators/map_async guides/call-an-http-api tutorial/3-concurrency
kafka: guides/consume-a-broker connectors
rabbitmq: guides/consume-a-broker connectors
429: guides/call-an-http-api
rate limit: operators/rate_limit guides/call-an-http-api
graceful shutdown: stopping tutorial/6-stopping
SIGTERM: stopping how-to/service
websocket: asgi
server-sent events: how-to/sse asgi
sse: how-to/sse asgi
fastapi: how-to/service how-to/sse asgi guides/fan-out-a-ticker
thread pool: guides/threads-and-cpu operators/map_in_thread
multiprocessing: guides/threads-and-cpu operators/map_in_process
csv: guides/files-and-processes
tail file: guides/files-and-processes operators/from_lines
subprocess: guides/files-and-processes operators/from_process
retry: operators/retry tutorial/4-errors
timeout: operators/timeout
circuit breaker: guides/call-an-http-api
debounce: operators/debounce
throttle: operators/throttle_first operators/throttle_latest
batch: operators/buffer operators/buffer_timeout
group_by: operators/group_by
share: operators/share tutorial/5-sharing
flatMapLatest: operators/README operators/switch_map operators/
merge: operators/merge
virtual time: how-to/testing testing
pytest: how-to/testing testing conformance
stall: how-to/debug-a-stall
prometheus: telemetry
opentelemetry: telemetry
docker: production
kubernetes: production
spark: spark how-to/spark-ingestion
checkpoint: how-to/spark-ingestion spark
rsocket: rsocket how-to/rsocket
custom operator: how-to/write-an-operator
uvloop: how-to/uvloop
CircuitBreaker: api/reactive_aio
exponential backoff: operators/retry tutorial/4-errors guides/call-an-http-api
progress bar: pictures operators/progress
cancel: tutorial/6-stopping stopping tutorial/2-async-for
ordered: operators/map_async guides/call-an-http-api
semaphore: operators/map_async tutorial/3-concurrency guides/call-an-http-api how-to/tune-bounds
asyncio.Queue: operators/from_queue faq why
async generator: operators/from_aiter tutorial/2-async-for guides/write-a-source
openai: guides/stream-an-llm
redis streams: guides/consume-a-broker connectors
outbox: connectors recipes guides/consume-a-broker
exactly once: delivery
idempotent: delivery how-to/spark-ingestion
ack: delivery
parquet: how-to/spark-to-files spark
pyspark: spark how-to/spark-ingestion
structured streaming: spark
deadlock: how-to/debug-a-stall how-to/testing testing
event loop blocked: how-to/debug-a-stall observe
contextvars: concepts/threads-and-context
hot observable: concepts/hot-and-cold tutorial/5-sharing
BehaviorSubject: migrating/reactivex tutorial/5-sharing concepts/hot-and-cold
marble diagram: testing glossary
mock: how-to/testing testing
unsubscribe: tutorial/2-async-for tutorial/6-stopping stopping migrating/ concepts/demand
rxpy: migrating/reactivex
uvicorn shutdown: asgi how-to/service guides/deploy stopping
health check: guides/deploy production
grafana: production telemetry
windows: versioning
nested: operators/flat_map operators/concat_map
pagination: guides/call-an-http-api examples operators/expand
poll: operators/interval operators/repeat operators/expand
deduplicate: operators/distinct operators/distinct_until_changed
queue full: concepts/demand errors operators/boundary tutorial/5-sharing
grpc: rsocket how-to/rsocket faq
"""
"""What people type, and the pages of which one must be among the first three (or the folder)."""
ASK = """async (queries) => {
    const config = JSON.parse(document.querySelector("#__config").textContent)
    const index = await (await fetch("/search/search_index.json")).json()
    const worker = new Worker("/" + config.search)
    const answer = (type) => new Promise((done) => {
        worker.onmessage = ({ data }) => data.type === type && done(data.data)
    })
    let ready = answer(1)
    worker.postMessage({ type: 0, data: { ...index, options: { suggest: true } } })
    await ready
    const found = []
    for (const query of queries) {
        const result = answer(3)
        worker.postMessage({ type: 2, data: query })
        found.push((await result).items.map(([first]) => first.location))
    }
    return found
}"""


def test_the_search_finds_what_people_type(site: Site) -> None:
    """The script that ranks is the one that the page of the site runs."""
    lines = (line.partition(": ") for line in QUERIES.strip().splitlines())
    expected = {query: pages.split() for query, _, pages in lines}
    with reading(site) as page:
        page.goto(f"{ORIGIN}/")
        found: list[list[str]] = page.evaluate(ASK, [*expected])
    missed = [
        f"{query}: {locations[:3]}, not {expected[query]}"
        for query, locations in zip(expected, found, strict=True)
        if not any(each.startswith(tuple(expected[query])) for each in locations[:3])
    ]
    assert not missed, "\n".join(missed)


@pytest.mark.parametrize(("scheme", "name"), [("light", "default"), ("dark", "slate")])
def test_it_follows_the_scheme_of_the_system(
    scheme: Literal["light", "dark"], name: str, site: Site
) -> None:
    with reading(site, scheme) as page:
        page.goto(f"{ORIGIN}/why/")
        assert page.locator("body").get_attribute("data-md-color-scheme") == name
        colors = "getComputedStyle(document.querySelector('article img')).colorScheme"
        assert page.evaluate(colors) == scheme


def load_from_elsewhere(site: Site) -> None:
    with reading(site) as page:
        page.goto(f"{ORIGIN}/why/")
        page.evaluate("fetch('https://cdn.example/x.js').catch(() => 0)")


def test_what_is_loaded_from_elsewhere_is_noticed(site: Site) -> None:
    with pytest.raises(AssertionError, match=r"not in the site: https://cdn\.example/x\.js"):
        load_from_elsewhere(site)


def test_there_are_texts_for_language_models(site: Site) -> None:
    overview = site["llms.txt"].decode()
    assert "- [Operators](operators/README.md)" in overview
    for line in overview.splitlines():
        if line.startswith("- ["):
            assert line.partition("](")[2].partition(")")[0] in site, line
    full = site["llms-full.txt"].decode()
    assert "# group_by" in full
    assert "# 5. Sharing" in full
