"""The lanes of the suite, and what every test can rely on."""

import os
import shutil
import signal
from collections.abc import Iterator

import pytest
import torch

from episodic_curiosity.support.machine import num_cores

SLOW = ("slow", "network", "browser")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="fail if a test is skipped")


def pytest_xdist_auto_num_workers() -> int:
    """`-n auto`: one more than there are cores, as many tests wait for other processes."""
    return num_cores() + 1


def pytest_sessionstart() -> None:
    """Sets what the processes that tests start inherit.

    Many tests send SIGINT, which a shell's background jobs ignore, and so would all that they
    start.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Ray's workers would get what the other tests leave of the cores, which is next to nothing.
    os.environ.setdefault("RAY_worker_niceness", "0")


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
    """Puts files with slow tests first, so that no core is left alone with one at the end."""
    slow = {item.path for item in items if any(map(item.get_closest_marker, SLOW))}
    items.sort(key=lambda item: item.path not in slow)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """With --no-skips a skipped test fails the session, so that a lane cannot pass empty."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("--no-skips") and terminal.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
