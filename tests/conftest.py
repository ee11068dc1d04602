"""The lanes of the suite, and what every test can rely on."""

import shutil
import signal
from collections.abc import Iterator

import pytest
import torch


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="fail if a test is skipped")


def pytest_sessionstart() -> None:
    """Lets SIGINT through, which many tests send to processes that they start.

    A shell's background jobs ignore it, and so would all that they start.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """A Chromium, for tests that look at pages."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    paths = [path for name in names if (path := shutil.which(name))]
    if not paths:
        pytest.fail("no Chromium was found; install one: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=paths[0])
        yield browser
        browser.close()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("needs a GPU")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps a module on one worker of pytest-xdist, and all of ViZDoom on the same.

    Modules share expensive fixtures. ViZDoom's tests look for engines and shared memory that
    others have left behind.
    """
    for item in items:
        module = item.nodeid.partition("::")[0]
        starts_engines = any(word in item.nodeid.lower() for word in ("doom", "scenario"))
        item.add_marker(pytest.mark.xdist_group("vizdoom" if starts_engines else module))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """With --no-skips a skipped test fails the session, so that a lane cannot pass empty."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("--no-skips") and terminal.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
