"""``python -m publishing.card``: draws docs/images/card.png, which other sites show with a link.

It needs Chromium and the packages of the tests. Draw it again when name or description change.
"""

import base64
import shutil
from typing import Final

from playwright.sync_api import sync_playwright

from publishing.project import ROOT, project

CARD: Final = ROOT / "docs" / "images" / "card.png"
SIZE: Final = (1200, 630)
_PAGE: Final = """
<style>
  @font-face {{ font-family: Inter; font-weight: 100 900;
    src: url(data:font/woff2;base64,{font}) format("woff2-variations"); }}
  body {{ margin: 0; width: 1200px; height: 630px; box-sizing: border-box; padding: 90px;
    background: #10263f; color: #fff; font-family: Inter; display: grid; align-content: center; }}
  svg {{ width: 150px; height: 150px; }}
  h1 {{ font-size: 96px; letter-spacing: -.03em; margin: 40px 0 20px; }}
  p {{ font-size: 40px; line-height: 1.35; margin: 0; color: #c9d8ea; max-width: 22em; }}
</style>
{logo}<h1>{name}</h1><p>{description}</p>
"""


def main() -> None:
    """Draw the card."""
    font = (ROOT / "publishing/theme/fonts/inter-latin-wght-normal.woff2").read_bytes()
    content = _PAGE.format(
        font=base64.b64encode(font).decode(),
        logo=(ROOT / "docs/images/logo.svg").read_text("utf-8"),
        name=project()["name"].replace("-", "_"),
        description=project()["description"],
    )
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]})
        page.set_content(content)
        page.evaluate("document.fonts.ready.then(() => true)")
        page.screenshot(path=CARD)
        browser.close()


if __name__ == "__main__":
    main()
