"""Saves a picture of the top of the demo's page, for the documentation.

    python examples/demo.py
    python examples/demo_picture.py runs/demo/demo.html docs/images/demo.png

The film is at two thirds. Needs playwright, Chromium and Pillow.
"""

import io
import shutil
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

from examples.pair_film import FPS, FRAMES

WIDTH = 1200  # of the page in pixels
LAST = "On unseen levels"  # the last section in the picture
MARGIN = 24


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit("usage: python examples/demo_picture.py PAGE.html PICTURE.png")
    page, picture = Path(sys.argv[1]), Path(sys.argv[2])
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not page.is_file():
        sys.exit(f"{page} does not exist")
    if picture.suffix != ".png":
        sys.exit(f"PICTURE must end in .png, got {picture}")
    if chromium is None:
        sys.exit("chromium not found: apt install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium)
        tab = browser.new_page(viewport={"width": WIDTH, "height": 900})
        tab.goto(page.resolve().as_uri())
        box = tab.locator(f'section:has(h2:text-is("{LAST}"))').bounding_box()
        assert box is not None
        tab.set_viewport_size(
            {"width": WIDTH, "height": int(box["y"] + box["height"]) + MARGIN}
        )
        tab.wait_for_timeout(1000 * FRAMES / FPS * 2 / 3)
        content = tab.screenshot()
        browser.close()
    image = Image.open(io.BytesIO(content)).convert("RGB")
    image.quantize(256, Image.Quantize.FASTOCTREE).save(picture, optimize=True)
    print(f"{picture}: {image.width} x {image.height}, {picture.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main()
