"""What is said of the installed build, and what `curiosity doctor` makes of it."""

import pytest

from episodic_curiosity.cli import doctor
from episodic_curiosity.cli import main as cli
from episodic_curiosity.worlds.dmlab import build as module
from episodic_curiosity.worlds.dmlab.build import examine_build
from episodic_curiosity.worlds.dmlab.levels import DMLAB_30
from tests.worlds.dmlab.builds import STANDIN


def test_a_plain_build(build):  # noqa: ARG001
    found = examine_build()
    assert (found.version, found.folder) == ("1.0", str(STANDIN))
    assert not found.is_patched
    assert not found.overrides_layouts
    assert found.steps_per_second is None


def test_a_patched_build_with_properties_is_timed(build):
    build.tell(patched=True, properties=True)
    found = examine_build(num_steps=20)
    assert found.is_patched
    assert found.overrides_layouts
    assert found.seconds_to_begin > 0.0
    assert found.steps_per_second > 10.0


def test_a_build_that_cannot_be_used(tmp_path, monkeypatch):
    (tmp_path / "deepmind_lab.py").write_text("raise OSError('libOSMesa.so.8 is missing')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ImportError, match=r"installed but cannot .* OSError: libOSMesa.so.8"):
        examine_build()


def test_a_build_without_dm_env(tmp_path, monkeypatch):
    (tmp_path / "deepmind_lab.py").write_text("import dm_env\n")
    (tmp_path / "dm_env.py").write_text("raise ModuleNotFoundError(name='dm_env')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ImportError, match=r"cannot be used: ImportError: .*pip install dm-env"):
        examine_build()


def test_an_old_build_takes_no_temporary_folder(build):
    build.tell(old=True)
    assert examine_build(num_steps=2).steps_per_second > 0.0


def test_only_a_refusal_of_the_setting_means_that_the_patch_is_missing(build):
    build.tell(patched=True, refuses={"minGoalDistance": "out of memory"})
    with pytest.raises(ImportError, match=r"cannot be used: RuntimeError: .*out of memory"):
        examine_build()


def test_a_build_is_looked_at_once(build, monkeypatch):
    build.tell(patched=True)
    found = examine_build()
    monkeypatch.setattr(module, "Workers", None)
    assert examine_build() is found


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({}, "very-sparse cannot be played"),
        ({"properties": True}, "very-sparse needs --world.redraw-starts"),
        ({"patched": True}, "with the authors' minGoalDistance"),
    ],
)
def test_the_doctor_says_which_build_it_is_and_how_fast(build, capsys, monkeypatch, told, said):
    build.tell(**told)
    monkeypatch.setattr(doctor, "_bonus_per_second", lambda _: 1.0)
    doctor.doctor([])
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "deepmind_lab" in line]
    words = " ".join(line.split())
    assert words.startswith(f"deepmind_lab 1.0 in {STANDIN}, {said}; an episode begins in ")
    assert line.endswith(" steps/s at 160 x 120")


def test_the_doctor_says_that_there_is_none(capsys, monkeypatch):
    monkeypatch.setattr(doctor, "_bonus_per_second", lambda _: 1.0)
    doctor.doctor([])
    words = " ".join(capsys.readouterr().out.split())
    assert "deepmind_lab not installed: docs/dmlab.md; maze/..." in words


def test_a_command_without_a_build_is_answered_in_a_sentence(capsys, tmp_path):
    asked = ["train", "--task", "dmlab/very-sparse", "--out", str(tmp_path / "run")]
    with pytest.raises(SystemExit, match="2"):
        cli.main(asked)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("curiosity: dmlab/very-sparse needs the module deepmind_lab")
    assert not (tmp_path / "run").exists()


def test_tasks_lists_dmlab_30(capsys):
    cli.main(["tasks"])
    listed = capsys.readouterr().out
    assert "dmlab/very-sparse" in listed
    for name in DMLAB_30:
        assert name in listed
