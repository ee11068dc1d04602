"""Conformance suites of worlds, bonuses and adapters, for any package; they need pytest."""

try:
    import pytest
except ImportError as missing:
    raise ImportError("the conformance suites need pytest: pip install pytest") from missing

for suite in ("worlds", "bonuses", "bonus_states", "calls", "adapters"):
    pytest.register_assert_rewrite(f"{__name__}.{suite}")
