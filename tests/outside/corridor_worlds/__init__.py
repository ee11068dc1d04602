"""A package outside this one, with a family of worlds; test_outside.py installs it."""
