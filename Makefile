# Every target sets up what it needs; a second call does not install again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test check format lint types bench soak pictures clean

demo: $(READY)  ## a curious agent beside plain PPO, on two CPU cores
	$(BIN)/python examples/demo.py

test: $(READY)  ## the whole test suite
	$(BIN)/pytest

check: lint types test  ## what continuous integration runs

format: $(READY)  ## rewrite the sources in the project's format
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

bench: $(READY)  ## speed of the bonus, of the worlds and of training
	$(BIN)/python benchmarks/bonus.py
	$(BIN)/python benchmarks/worlds.py
	$(BIN)/python benchmarks/doom.py
	$(BIN)/python benchmarks/ant.py
	$(BIN)/python benchmarks/train.py

soak: $(READY)  ## every method killed and resumed 100 times
	$(BIN)/python -m benchmarks.soak

pictures: $(READY)  ## the pictures of the documentation
	$(BIN)/python examples/maze_pictures.py docs/images/mazes.png
	$(BIN)/python examples/ant_pictures.py docs/images/ant.png

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@
