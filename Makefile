# Every target sets up what it needs; a second call does not install again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# `make TORCH=cpu ...` takes torch's build for CPUs, which is small, from PyTorch's own index.
TORCH ?=
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
ifneq ($(TORCH),$(filter cpu,$(TORCH)))
$(error TORCH must be cpu or empty, got $(TORCH))
endif
PYTEST ?= $(BIN)/pytest
# A process per core and one more, each with one thread, and a file of tests at a time.
PARALLEL := OMP_NUM_THREADS=1 $(PYTEST) -n auto --dist loadfile --no-loadscope-reorder

.PHONY: demo quick test test-gpu check format lint types docs bench soak pictures clean

demo: $(READY)  ## curious agents beside plain PPO, on two CPU cores
	$(BIN)/python examples/demo.py

quick: $(READY)  ## the tests that take under two minutes together
	$(PARALLEL) -m 'not (slow or network or browser or gpu)'

test: $(READY)  ## all tests but those for a GPU
	$(PARALLEL) -m 'not gpu'

test-gpu:  ## the tests for a GPU; fails where one is skipped. Without .venv: PYTEST='python3 -m pytest'
	$(PYTEST) -m gpu --no-skips $(sort $(dir $(shell grep -rl --include=*.py "mark.gpu" tests)))

check: lint types docs test  ## what continuous integration runs

format: $(READY)  ## rewrite the sources in the project's format
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

docs: $(READY)  ## the documentation as a site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(READY)  ## speed of the bonus, of the worlds and of training
	$(BIN)/python benchmarks/bonus.py
	$(BIN)/python benchmarks/worlds.py
	$(BIN)/python benchmarks/doom.py
	$(BIN)/python benchmarks/ant.py
	$(BIN)/python benchmarks/train.py

soak: $(READY)  ## kills, signals, full disks, damaged files, odd input, dead engines: docs/reliability.md
	$(BIN)/python -m benchmarks.soak

pictures: $(READY)  ## the pictures of the documentation
	$(BIN)/python examples/maze_pictures.py docs/images/mazes.png
	$(BIN)/python examples/ant_pictures.py docs/images/ant.png
	$(BIN)/python examples/tutorial_pictures.py docs/images

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Everything by its hash, the build backend included; torch's build for CUDA, which is what most
# indexes have for Linux, does not even import without the libraries of the second file.
LOCKED := $(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement
$(READY): pyproject.toml requirements.lock requirements-cuda.lock requirements-cpu.lock
	$(PYTHON) -m venv $(VENV)
	$(if $(TORCH),$(LOCKED) requirements-cpu.lock --index-url $(TORCH_INDEX))
	$(LOCKED) requirements.lock
	$(BIN)/python -c 'import torch' 2>/dev/null || $(LOCKED) requirements-cuda.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-index --no-build-isolation --editable .
	touch $@
