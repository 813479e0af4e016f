"""Runs the Chromium of the machine, headless."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from tests.node.packages import unavailable

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_chromium() -> str:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return found or unavailable("Chromium is not installed: apt install chromium")


def visit(url: str, until: str, folder: Path) -> Any:
    """Open *url*, wait until the expression *until* is true there, return `window.found`."""
    chromium = find_chromium()
    console: list[str] = []
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            folder, executable_path=chromium, args=OPTIONS, headless=True
        )
        page = context.pages[0]
        page.on("console", lambda message: console.append(message.text))
        page.on("pageerror", lambda error: console.append(str(error)))
        try:
            page.goto(url)
            page.wait_for_function(until, timeout=40_000)
            return page.evaluate("window.found")
        except Exception as error:
            pytest.fail(
                f"{error}\nthe page has {page.evaluate('window.found')} and logged: {console}"
            )
        finally:
            context.close()
