"""The report in a real browser: what a person would see, and what leaves the page: nothing."""

import pytest
from playwright.sync_api import Page

from episodic_curiosity.cli.main import main
from tests.show.report.fixture import write, write_results

pytestmark = pytest.mark.browser

BEGUN = ["#table1", "#table1", "#vizdoom", "#threshold", "#accuracy"]  # in two settings
HEADINGS = [
    "Experiments",
    "Reward, or coverage in tasks without reward, in the mazes",
    "Reaching the goal of one ViZDoom maze",
    "The reachability threshold k",
    "Held-out accuracy of R-networks",
    "Claims of the paper's text",
    "How to read the numbers",
    "Not measured yet",
]
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The page of the fixture, one of whose files is damaged."""
    folder = tmp_path_factory.mktemp("report")
    write_results(folder / "results")
    damaged = write(folder / "results", "table1", "ppo", "sparse", 1e9, seed=9)
    damaged.write_bytes(damaged.read_bytes()[:200])
    main(["report", str(folder / "results"), "--out", str(folder / "report.html")])
    return folder / "report.html"


@pytest.fixture
def open_page(browser, report):
    """Opens the report; afterwards, nothing but its file may have been asked for."""
    contexts, requests, complaints = [], [], []

    def open_it(**options) -> Page:
        context = browser.new_context(**{"viewport": DESK} | options)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(report.as_uri())
        return page

    yield open_it
    for context in contexts:
        for page in context.pages:
            page.wait_for_load_state("networkidle")
        context.close()
    assert set(requests) == {report.as_uri()}
    assert complaints == []


def cell(page: Page, block: int, row: int, column: int) -> list[str]:
    """The lines of a cell in the first table of a block of Table 1."""
    table = page.locator("#table1 .block").nth(block).locator("table").first
    return table.locator("tr").nth(row).locator("td").nth(column).inner_text().split("\n")


def test_the_numbers_of_table_1(open_page):
    page = open_page()
    assert page.title() == "Episodic curiosity: measured and published results"
    blocks = page.locator("#table1 .block > h3").all_inner_texts()
    assert blocks == ["maze, preset gpu, 20,000,000 steps", "maze, preset gpu, 1,000,000 steps"]
    assert cell(page, 0, 1, 1) == ["25.6 ± 6.2", "5 seeds", "paper 27.0 ± 5.1 (30)"]
    assert cell(page, 0, 3, 4) == ["464 ± 16", "5 seeds", "paper 475 ± 8 (30)"]
    assert cell(page, 0, 2, 7) == ["missing", "paper 9.39 ± 0.02 (30)"]
    assert cell(page, 1, 1, 4) == ["150", "1 seed", "paper 191 ± 12 (30)"]
    assert "1 file not counted" in page.locator(".warning").inner_text()
    assert page.locator("body").inner_text().count("1,000,000,000") == 0  # the damaged one


def test_contents_lead_to_every_measured_experiment(open_page):
    page = open_page()
    links = page.locator("td a")
    anchors = [link.get_attribute("href") for link in links.all()]
    assert anchors == BEGUN
    links.last.click()
    assert page.evaluate("location.hash") == anchors[-1]
    assert page.locator(anchors[-1]).bounding_box()["y"] < DESK["height"]


def test_it_opens_with_what_was_measured_and_ends_with_what_was_not(open_page):
    page = open_page()
    assert page.locator("h2").all_inner_texts() == HEADINGS
    missing = page.locator("section", has=page.get_by_role("heading", name="Not measured yet"))
    fold = missing.locator("details", has_text="Ant locomotion out of curiosity: 6 cells")
    assert not fold.locator("table").is_visible()
    fold.locator("summary").click()
    assert "curiosity table ant --world ant" in fold.inner_text()


def test_folds_open_and_show_the_numbers_and_their_commands(open_page):
    page = open_page()
    numbers, commands = page.locator("#table1 .block").first.locator("details").all()
    assert not numbers.locator("table").is_visible()
    numbers.locator("summary").click()
    row = numbers.locator("tr", has_text="sparse").filter(has_text="ppo+ec").first
    shown = row.locator("td").all_inner_texts()
    assert shown[:6] == ["sparse", "ppo+ec", "gpu", "20,000,000", "5", "100"]
    assert shown[6:10] == ["28.8", "24.9 to 32.7", "3.1", "28.0"]
    assert shown[10].startswith("0.78 (")
    commands.locator("summary").click()
    command = "curiosity table table1 --cell maze/sparse:ppo+ec:3 --preset gpu --steps 20000000"
    assert page.get_by_text(command).is_visible()


def test_bars_are_as_long_as_their_numbers(open_page):
    page = open_page()
    figure = (
        page.locator("#table1 .block").first.locator("figure", has=page.locator("rect")).first
    )
    assert "preset gpu, 20,000,000 steps, 5 seeds" in figure.inner_text()
    widths = [bar.bounding_box()["width"] for bar in figure.locator("rect").all()]
    # Means on sparse, of the Grid Oracle's 50.4.
    shares = [mean / 50.4 for mean in (25.6, 22.8, 28.8, 40.8, 50.4)]
    assert [width / widths[-1] for width in widths] == pytest.approx(shares, abs=0.01)
    assert figure.locator(".value").all_text_contents() == ["51%", "45%", "57%", "81%", "100%"]
    # The published marks: 27.0 is 48 % of 56.7.
    start = figure.locator("rect").first.bounding_box()["x"]
    marks = [mark.bounding_box() for mark in figure.locator(".published").all()]
    middle = marks[0]["x"] + marks[0]["width"] / 2
    assert (middle - start) / widths[-1] == pytest.approx(27.0 / 56.7, abs=0.02)
    # On dense-2 ICM was not measured.
    dense = page.locator("#table1 .block").first.locator("figure", has_text="dense-2").first
    assert dense.locator("rect").count() == 4
    assert dense.locator(".missing").all_text_contents() == ["missing"]


def test_curves_begin_after_the_steps_of_the_r_network(open_page):
    page = open_page()
    figures = page.locator("#table1 .block").first.locator(
        "figure", has=page.locator("polyline")
    )
    assert figures.count() == 7
    figure = figures.first
    assert "reward per episode while training" in figure.inner_text()
    assert "steps, with random play" in figure.inner_text()
    assert figure.locator("g").count() == 5
    assert figure.locator("polyline.run").count() == 25
    plain, curious = (figure.locator("g").nth(number) for number in (0, 2))
    assert plain.locator(".before").count() == 0
    played = curious.locator(".before").bounding_box()
    line = curious.locator("polyline").last.bounding_box()
    assert played["width"] > 10
    assert played["x"] + played["width"] <= line["x"]
    assert "2,500,000 steps of random play" in curious.locator("title").first.text_content()
    colours = {
        group.locator("polyline").last.evaluate("line => getComputedStyle(line).stroke")
        for group in figure.locator("g").all()
    }
    assert len(colours) == 5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("viewport", [PHONE, DESK], ids=["phone", "desk"])
def test_it_is_readable_in_every_light_and_on_every_screen(open_page, scheme, viewport):
    page = open_page(color_scheme=scheme, viewport=viewport)
    style = "getComputedStyle(document.body)"
    paper, ink = (
        sum(map(int, page.evaluate(f"{style}.{name}.match(/\\d+/g)")))
        for name in ("backgroundColor", "color")
    )
    assert abs(paper - ink) > 500  # of 765
    assert (paper > ink) == (scheme == "light")
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    # Wide tables scroll by themselves, and the names of their rows stay.
    name = page.locator("#table1 .block").first.locator("td").first
    before = name.bounding_box()["x"]
    page.locator("#table1 .scroll").first.evaluate("box => { box.scrollLeft = 200; }")
    assert name.bounding_box()["x"] == pytest.approx(before, abs=1)


def test_a_phone_shows_what_was_measured_without_scrolling(open_page):
    page = open_page(viewport=PHONE)
    for heading, kept, left_out in (
        ("Experiments", "seeds per cell", ["world", "preset"]),
        ("Claims of the paper's text", "published", ["claimed"]),
    ):
        section = page.locator("section", has=page.get_by_role("heading", name=heading))
        box, head = section.locator(".scroll"), section.locator("th")
        assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
        assert head.filter(has_text=kept).is_visible()
        hidden = [cell.text_content() for cell in head.all() if not cell.is_visible()]
        assert hidden == left_out
    desk = open_page()
    assert all(cell.is_visible() for cell in desk.locator("section th").all()[:6])
