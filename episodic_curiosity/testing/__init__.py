"""Conformance suites of worlds, bonuses and adapters, this package's and others; need pytest."""

try:
    import pytest
except ImportError as missing:
    raise ImportError("the conformance suites need pytest: pip install pytest") from missing

for suite in ("worlds", "bonuses", "adapters"):
    pytest.register_assert_rewrite(f"{__name__}.{suite}")
