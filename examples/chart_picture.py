"""Saves a picture of one chart of a report, for the documentation.

    curiosity report results --out report.html
    python examples/chart_picture.py report.html "no-reward while training" PICTURE.png

The chart is the one whose caption has all of the words. Needs playwright and Chromium.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH = 560  # of the page in pixels; the picture is twice as wide


def main() -> None:
    if len(sys.argv) != 4:
        sys.exit("usage: python examples/chart_picture.py PAGE.html CAPTION PICTURE.png")
    page, caption, picture = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not page.is_file():
        sys.exit(f"{page} does not exist")
    if Path(picture).suffix != ".png":
        sys.exit(f"PICTURE must end in .png, got {picture}")
    if chromium is None:
        sys.exit("chromium not found: apt install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        tab = browser.new_page(viewport={"width": WIDTH, "height": 800}, device_scale_factor=2)
        tab.goto(page.resolve().as_uri())
        charts = tab.locator("figure")
        captions = [chart.locator("figcaption").inner_text() for chart in charts.all()]
        found = [
            number
            for number, text in enumerate(captions)
            if set(caption.split()) <= set(text.replace(";", " ").split())
        ]
        if len(found) != 1:
            sys.exit(
                f"wanted one chart with {caption!r}, got {len(found)}; captions: "
                + "; ".join(" ".join(text.split()) for text in captions)
            )
        charts.nth(found[0]).screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    main()
