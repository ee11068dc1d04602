"""Folders by name, and cards that must fit them."""

import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

import episodic_curiosity as ec
from episodic_curiosity.support import saving, shared
from episodic_curiosity.support.saving import LoadError, UnreadableError
from episodic_curiosity.support.shared import find_folder, write_card


def make_folder(folder: Path, num_actions: int = 3) -> Path:
    ec_agent(num_actions).save(folder)
    write_card(folder, {"files": shared.fingerprints(folder)})
    return folder


def ec_agent(num_actions: int) -> ec.Agent:
    return ec.Agent((4,), num_actions)


@pytest.fixture
def ships(tmp_path, monkeypatch):
    """A package that ships two agents."""
    folder = tmp_path / "pretrained"
    make_folder(folder / "maze-eco", num_actions=3)
    make_folder(folder / "maze-ppo", num_actions=5)
    monkeypatch.setattr(shared, "SHIPPED", folder)
    return folder


def test_a_name_finds_its_folder(ships):
    assert shared.shipped_names() == ["maze-eco", "maze-ppo"]
    assert find_folder("pretrained:maze-eco") == ships / "maze-eco"
    assert ec.load_agent("pretrained:maze-ppo").config.num_actions == 5
    assert ec.load_agent(Path("pretrained:maze-eco")).config.num_actions == 3
    assert ec.load_agent(ships / "maze-eco").config.num_actions == 3  # the folder itself


NOT_SHIPPED = ("maze-ec0", "", "..", "../pretrained/maze-eco", "/etc", "maze-eco/")


@pytest.mark.usefixtures("ships")
@pytest.mark.parametrize("name", NOT_SHIPPED)
def test_a_name_that_is_not_shipped(name):
    with pytest.raises(LoadError) as error:
        find_folder(f"pretrained:{name}")
    meant = " (did you mean maze-eco?)" if name.startswith("maze") else ""
    assert str(error.value) == (
        f"there is no pretrained:{name}{meant}; there are maze-eco, maze-ppo"
    )


def test_where_nothing_is_shipped(tmp_path, monkeypatch):
    monkeypatch.setattr(shared, "SHIPPED", tmp_path / "nothing")
    with pytest.raises(LoadError, match="no pretrained:x: this installation ships nothing"):
        ec.load_agent("pretrained:x")


def test_a_folder_without_a_card_is_taken_as_it_is(tmp_path):
    ec_agent(2).save(tmp_path)
    assert find_folder(tmp_path, "agent") == tmp_path
    assert find_folder(str(tmp_path / "none")) == tmp_path / "none"
    assert ec.load_agent(tmp_path).config.num_actions == 2


def test_a_part_that_is_not_there(tmp_path):
    with pytest.raises(LoadError) as error:
        ec.load_agent(tmp_path / "none")
    assert str(error.value) == f"there is no folder {tmp_path / 'none'}"
    with pytest.raises(LoadError) as error:
        ec.load_agent(tmp_path)
    assert str(error.value) == f"{tmp_path} has no agent"
    ec_agent(2).save(tmp_path)
    with pytest.raises(LoadError) as error:
        ec.RNetwork.load(tmp_path)
    assert str(error.value) == f"{tmp_path} has no R-network, only: agent"


def test_which_names_are_paths():
    assert all(map(shared.is_name, ("pretrained:x", "hf:a/b", Path("hf:a/b"))))
    assert not any(map(shared.is_name, ("runs/x", "hf", "C:x", Path("pretrained/x"))))
    assert shared.is_shipped(Path("pretrained:x"))
    assert not shared.is_shipped(Path("hf:a/b"))


class TestCards:
    def test_of_other_weights(self, ships):
        shutil.copy(ships / "maze-ppo" / "agent.safetensors", ships / "maze-eco")
        with pytest.raises(LoadError, match="describes another agent"):
            ec.load_agent("pretrained:maze-eco")

    def test_with_a_file_missing(self, ships):
        (ships / "maze-eco" / "agent.safetensors").unlink()
        with pytest.raises(LoadError, match=r"describes agent\.safetensors, which is missing"):
            ec.load_agent(ships / "maze-eco")

    def test_with_a_file_that_it_does_not_describe(self, ships):
        ec.RNetwork((4,)).save(ships / "maze-eco")
        with pytest.raises(LoadError, match=r"does not describe r_network\.safetensors, which"):
            ec.load_agent("pretrained:maze-eco")

    def test_that_was_edited(self, ships):
        path = ships / "maze-eco" / "card.json"
        path.write_text(path.read_text().replace('"files"', '"fules"'))
        with pytest.raises(LoadError, match=r"card\.json was changed after it was written"):
            ec.load_agent("pretrained:maze-eco")

    @pytest.mark.parametrize("files", [None, 3, "x", ["agent.safetensors"]])
    def test_without_files(self, ships, files):
        write_card(ships / "maze-eco", {"files": files})
        with pytest.raises(LoadError, match="does not list the files that it describes"):
            ec.load_agent("pretrained:maze-eco")

    def test_that_is_no_json(self, ships):
        (ships / "maze-eco" / "card.json").write_text("{")
        with pytest.raises(LoadError, match="is not JSON"):
            ec.load_agent("pretrained:maze-eco")

    @pytest.mark.usefixtures("ships")
    def test_of_a_part_that_is_not_there(self):
        with pytest.raises(LoadError) as error:
            ec.RNetwork.load("pretrained:maze-eco")
        assert str(error.value) == "pretrained:maze-eco has no R-network, only: agent"


def test_weights_whose_content_was_changed_are_refused(ships):
    path = ships / "maze-eco" / "agent.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(LoadError, match="fingerprints differ"):
        ec.load_agent("pretrained:maze-eco")


def test_bfloat16_is_accepted_for_float32_and_nothing_else(tmp_path):
    agent = ec_agent(3)
    for dtype, is_good in ((torch.bfloat16, True), (torch.float16, False)):
        weights = {name: tensor.to(dtype) for name, tensor in agent.state_dict().items()}
        saving.save(tmp_path, "agent", weights, vars(agent.config))
        if not is_good:
            with pytest.raises(LoadError, match=r"as torch\.float16 .*, wanted torch\.float32"):
                ec.load_agent(tmp_path)
            continue
        loaded = ec.load_agent(tmp_path).state_dict()
        for name, tensor in agent.state_dict().items():
            assert loaded[name].dtype == torch.float32
            assert torch.equal(loaded[name], tensor.bfloat16().float())
    saving.save(tmp_path, "x", {"fitted": torch.tensor(1.0).bfloat16()}, {})
    with pytest.raises(LoadError, match=r"as torch\.bfloat16 \(\), wanted torch\.bool"):
        saving.read_like(tmp_path, "x", lambda: {"fitted": torch.tensor(True)})


class Hub:
    """A stand-in for huggingface_hub with a cache folder and, perhaps, a network."""

    def __init__(self, cache: Path, online: Path | None) -> None:
        self.cache, self.online = cache, online
        self.asked: list[tuple[str, str | None, bool]] = []

    def snapshot_download(
        self,
        repo_id: str,
        *,
        revision: str | None,
        allow_patterns: list[str],
        local_files_only: bool,
    ) -> str:
        self.asked.append((repo_id, revision, local_files_only))
        if not local_files_only:
            if self.online is None:
                raise ConnectionError("[Errno -2] Name or service not known\nmore")
            self.cache.mkdir(exist_ok=True)
            for path in self.online.iterdir():
                if path.name in allow_patterns:
                    shutil.copy(path, self.cache)
        if not self.cache.exists():
            raise FileNotFoundError("not in the cache")
        return str(self.cache)


@pytest.fixture
def hub(tmp_path, monkeypatch):
    def make(*, online: Path | None = None) -> Hub:
        found = Hub(tmp_path / "cache", online)
        module = ModuleType("huggingface_hub")
        module.snapshot_download = found.snapshot_download
        monkeypatch.setitem(sys.modules, "huggingface_hub", module)
        return found

    return make


class TestHub:
    def test_what_is_in_the_cache_needs_no_network(self, hub, tmp_path, capsys):
        found = hub()
        make_folder(tmp_path / "cache", num_actions=7)
        assert ec.load_agent("hf:someone/agent").config.num_actions == 7
        assert found.asked == [("someone/agent", None, True)]
        assert capsys.readouterr().err == ""

    def test_a_download_is_announced(self, hub, tmp_path, capsys):
        there = make_folder(tmp_path / "online", num_actions=6)
        (there / "run_me.py").write_text("raise SystemExit")
        found = hub(online=there)
        assert ec.load_agent("hf:someone/agent@v1").config.num_actions == 6
        assert found.asked == [("someone/agent", "v1", True), ("someone/agent", "v1", False)]
        assert capsys.readouterr().err == (
            "downloading hf:someone/agent@v1 from the Hugging Face Hub\n"
        )
        assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == [
            "agent.safetensors",
            "card.json",
        ]

    def test_what_an_interrupted_download_left_is_completed(self, hub, tmp_path):
        there = make_folder(tmp_path / "online", num_actions=6)
        hub(online=there)
        (tmp_path / "cache").mkdir()
        shutil.copy(there / "card.json", tmp_path / "cache")
        assert ec.load_agent("hf:someone/agent").config.num_actions == 6

    def test_no_network(self, hub):
        hub()
        with pytest.raises(UnreadableError) as error:
            ec.load_agent("hf:someone/agent")
        assert str(error.value) == (
            "hf:someone/agent cannot be downloaded "
            "(ConnectionError: [Errno -2] Name or service not known)"
        )

    def test_a_repository_of_something_else(self, hub, tmp_path):
        (tmp_path / "online").mkdir()
        hub(online=tmp_path / "online")
        with pytest.raises(LoadError, match=r"hf:someone/agent has no card\.json"):
            ec.load_agent("hf:someone/agent")

    def test_a_card_that_does_not_fit(self, hub, tmp_path):
        there = make_folder(tmp_path / "online")
        ec_agent(9).save(there)
        hub(online=there)
        with pytest.raises(LoadError, match="describes another agent"):
            ec.load_agent("hf:someone/agent")

    def test_without_huggingface_hub(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "huggingface_hub", None)
        with pytest.raises(ImportError, match="hf:a/b needs huggingface_hub: pip install"):
            ec.load_agent("hf:a/b")

    @pytest.mark.parametrize("name", ["hf:", "hf:a", "hf:a/b/c", "hf:/b", "hf:a/"])
    def test_a_name_that_is_none(self, hub, name):
        found = hub()
        with pytest.raises(ValueError, match="a repository must be hf:OWNER/NAME"):
            ec.load_agent(name)
        assert found.asked == []
