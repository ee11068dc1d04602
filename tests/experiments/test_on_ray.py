"""What a Ray cluster is asked for, and what is said where there is none."""

import dataclasses
import socket
import sys
from types import SimpleNamespace

import pytest

from episodic_curiosity.experiments import on_ray
from episodic_curiosity.experiments.on_ray import Request, run_cells_on_ray
from episodic_curiosity.experiments.runner import Outcome, RunnerConfig
from episodic_curiosity.experiments.status import run_folder
from episodic_curiosity.runs.record import Record
from tests.experiments.test_runner import a_cell, states


class RayError(Exception):
    pass


class FakeRay(SimpleNamespace):
    """A cluster that does as it is told; the first time it is asked, nothing is ready."""

    def __init__(self):
        super().__init__(exceptions=SimpleNamespace(RayError=RayError), asked=[], looks=0)
        self.resources = {"CPU": 2.0, "GPU": 1.0}

    def cluster_resources(self):
        return self.resources

    def init(self, **options):
        self.options = options

    def shutdown(self):
        self.is_shut_down = True

    def remote(self, function):
        def options(**options):
            self.asked.append(options)
            return SimpleNamespace(remote=lambda *arguments: (function, arguments))

        return SimpleNamespace(options=options)

    def wait(self, references, *, num_returns, timeout):
        assert (num_returns, timeout) == (1, on_ray.TELL_EVERY)
        self.looks += 1
        return ([], references) if self.looks == 1 else (references[:1], references[1:])

    def get(self, reference):
        function, arguments = reference
        if arguments[0].key.seed == 13:
            raise RayError("the worker died\nand died\nagain")
        return function(*arguments)


@pytest.fixture
def ray(monkeypatch):
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)
    return fake


@pytest.fixture
def settings(tmp_path):
    return RunnerConfig(results=tmp_path / "results", runs=tmp_path / "runs")


def test_cells_are_tasks_with_requests_and_retries(ray, settings, monkeypatch, capsys):
    monkeypatch.setattr(on_ray, "run_cell", lambda cell, _: Outcome(cell, "done", "done"))
    with Record(run_folder(a_cell(1), settings.runs), a_cell(1).run().to_dict()) as record:
        record.write(4_000, {"reward": 1.0})
        record.checkpoint(1, {})
    cells = [a_cell(13), a_cell(1), a_cell(2)]
    request = Request(num_cpus=2, num_gpus=0.5, num_retries=3)
    outcomes = run_cells_on_ray(cells, settings, "auto", request)
    assert states(outcomes) == [(13, "failed"), (1, "done"), (2, "done")]
    assert outcomes[0].message == "failed: RayError: the worker died"
    assert ray.asked == [{"num_cpus": 2, "num_gpus": 0.5, "max_retries": 3}]
    assert ray.options["address"] == "local"
    assert ray.is_shut_down
    said = capsys.readouterr().err
    assert "table1 maze/sparse:ppo:1: 4,000 of 10,000 steps" in said
    assert "[3/3] table1 maze/sparse:ppo:2 (cpu, 10,000 steps): done" in said


def test_without_a_gpu_asked_for_cells_are_measured_on_cpus(ray, settings, monkeypatch):
    devices = []

    def note(cell, settings):
        devices.append(settings.device)
        return Outcome(cell, "done", "")

    monkeypatch.setattr(on_ray, "run_cell", note)
    anywhere = dataclasses.replace(settings, device="auto")
    run_cells_on_ray([a_cell()], anywhere, "auto")
    run_cells_on_ray([a_cell()], anywhere, "auto", Request(num_gpus=0.5))
    assert devices == ["cpu", "auto"]
    ray.asked.clear()
    on_gpu = dataclasses.replace(settings, device="cuda")
    with pytest.raises(ValueError, match="device cuda needs num_gpus above 0 per cell, got 0"):
        run_cells_on_ray([a_cell()], on_gpu, "auto")
    assert ray.asked == []


def test_what_the_cluster_never_has_is_said(ray, settings):
    """Ray itself would wait for it for ever."""
    ray.resources = {"CPU": 2.0}
    with pytest.raises(ValueError, match="needs 1 GPUs, but the Ray cluster at auto has 0"):
        run_cells_on_ray([a_cell()], settings, "auto", Request(num_gpus=1))
    with pytest.raises(ValueError, match="needs 3 CPUs, but the Ray cluster at auto has 2"):
        run_cells_on_ray([a_cell()], settings, "auto", Request(num_cpus=3))
    assert ray.asked == []
    assert ray.is_shut_down


def test_a_worker_waits_a_little_for_the_one_before_it(ray, settings, monkeypatch):
    states_to_come = ["busy", "busy", "done"]
    monkeypatch.setattr(
        on_ray, "run_cell", lambda cell, _: Outcome(cell, states_to_come.pop(0), "")
    )
    monkeypatch.setattr(on_ray.time, "sleep", lambda _: None)
    assert states(run_cells_on_ray([a_cell(0)], settings, "auto")) == [(0, "done")]
    monkeypatch.setattr(on_ray, "run_cell", lambda cell, _: Outcome(cell, "busy", ""))
    monkeypatch.setattr(on_ray, "PATIENCE", 0.0)
    assert states(run_cells_on_ray([a_cell(0)], settings, "auto")) == [(0, "busy")]
    assert ray.is_shut_down


def test_where_there_is_no_cluster(ray, settings):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # a port that nobody listens on
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(OSError, match=f"there is no Ray cluster at {address}"):
            run_cells_on_ray([a_cell()], settings, address)
    with pytest.raises(ValueError, match="address must be HOST:PORT or auto, got 'somewhere'"):
        run_cells_on_ray([a_cell()], settings, "somewhere")
    assert ray.asked == []


def test_a_cluster_that_refuses_is_named(ray, settings, monkeypatch):
    def refuse(**_):
        raise ConnectionError("no token")

    monkeypatch.setattr(ray, "init", refuse)
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", 0))
        somebody.listen()
        address = f"127.0.0.1:{somebody.getsockname()[1]}"
        with pytest.raises(OSError, match=f"connect to Ray at {address}: no token"):
            run_cells_on_ray([a_cell()], settings, address)


def test_without_ray_the_extra_is_named(settings, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"pip install 'episodic-curiosity\[ray\]'"):
        run_cells_on_ray([a_cell()], settings, "auto")


def test_requests_are_checked():
    with pytest.raises(ValueError, match="num_gpus must be a finite number above 0, got -1"):
        Request(num_gpus=-1)
    with pytest.raises(ValueError, match="num_retries must be an integer of at least 0"):
        Request(num_retries=-1)
