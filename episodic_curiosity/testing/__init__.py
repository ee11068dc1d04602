"""Conformance suites for worlds and bonuses, this package's and others; they need pytest."""

try:
    import pytest
except ImportError as missing:
    raise ImportError("the conformance suites need pytest: pip install pytest") from missing

pytest.register_assert_rewrite(f"{__name__}.worlds", f"{__name__}.bonuses")
