"""The lanes of the suite, and what every test can rely on."""

import signal

import pytest
import torch


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--no-skips", action="store_true", help="fail if a test is skipped")


def pytest_sessionstart() -> None:
    """Lets SIGINT through, which many tests send to processes that they start.

    A shell's background jobs ignore it, and so would all that they start.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


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
