"""The site as a reader sees it: complete, without a server, and no request leaves a page."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


def build(repository: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Does what `make docs` does, for another folder."""
    makefile = (ROOT / "Makefile").read_text()
    (words,) = re.findall(r"\$\(BIN\)/mkdocs (.*)", makefile)
    command = [sys.executable, "-m", "mkdocs", *words.split(), "--site-dir", folder]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, cwd=repository, env=quiet, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_broken_links_are_refused(tmp_path):
    copy = tmp_path / "copy"
    for name in ("docs", "examples", "episodic_curiosity", "tests/outside"):
        shutil.copytree(ROOT / name, copy / name)
    for file in (*ROOT.glob("*.md"), ROOT / "mkdocs.yml"):
        shutil.copy(file, copy)
    with (copy / "docs" / "speed.md").open("a") as page:
        page.write("[page](nowhere.md), [file](../NOTHING.md), [anchor](tables.md#nothing)")
    done = build(copy, tmp_path / "site")
    assert done.returncode == 1
    for link in ("nowhere.md", "../NOTHING.md", "tables.md#nothing"):
        assert f"contains a link '{link}'" in done.stderr
    assert done.stderr.count("WARNING") == 3


@pytest.mark.slow
def test_pages_and_the_files_that_they_link_to_are_there(site):
    found = {page.relative_to(site).as_posix() for page in site.rglob("*.html")}
    for page in ("index", "tutorial", "adapters", "how-to/own_loop", "reference/curiosity"):
        assert f"{page}.html" in found
    for file in ("CONTRIBUTING", "SECURITY", "CHANGELOG", "examples/cleanrl_ppo.py"):
        assert f"repository/{file}.html" in found
    assert 'href="repository/CONTRIBUTING.html"' in (site / "index.html").read_text()
    assert 'href="repository/SECURITY.html"' in (site / "training.html").read_text()
    assert not (site / "hooks").exists()


@pytest.mark.slow
def test_comments_of_fields_are_in_the_reference(site):
    page = (site / "reference" / "curiosity.html").read_text()
    assert "Steps between two refits" in page  # OnlineConfig.refit_every
    assert "0.5 if episodes have a fixed length" in page  # an argument of EpisodicCuriosity


@pytest.mark.browser
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_no_request_leaves_and_nothing_is_too_wide(browser, site, viewport):
    context = browser.new_context(viewport=viewport, color_scheme="dark")
    page = context.new_page()
    requests, complaints = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    for file in sorted(set(site.rglob("*.html")) - {site / "404.html"}):  # a server's
        page.goto(file.as_uri())
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= viewport["width"], (file.relative_to(site), width)
        broken = "Array.from(document.images).filter(i => i.complete && !i.naturalWidth).length"
        assert page.evaluate(broken) == 0, file.relative_to(site)
    context.close()
    assert [url for url in requests if not url.startswith((site.as_uri(), "data:"))] == []
    assert complaints == []


@pytest.mark.browser
def test_search_works_from_a_folder(browser, site):
    page = browser.new_page(viewport=DESK)
    page.goto((site / "how-to" / "gpu.html").as_uri())
    box = page.get_by_role("textbox", name="Search")
    box.click()  # the index is loaded when the search is opened
    meta = page.locator(".md-search-result__meta", has_text="Type to start searching")
    meta.wait_for(state="attached")
    box.press_sequentially("couch potato")
    page.locator(".md-search-result__item").first.wait_for()
    titles = page.locator(".md-search-result__item h1, .md-search-result__item h2")
    assert "The couch potato" in titles.all_inner_texts()
    page.close()
