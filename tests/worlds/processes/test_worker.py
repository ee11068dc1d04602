"""The parts of a worker process that need no process."""

import shutil

from episodic_curiosity.worlds.processes import worker


def test_a_folder_is_removed_although_a_simulator_writes_to_it(tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    late_files = ["config", "log"]
    remove_once = shutil.rmtree

    def remove_and_write(path: str, ignore_errors: bool) -> None:
        """The simulator writes a file after the others were removed, but before the folder."""
        remove_once(path, ignore_errors=ignore_errors)
        if late_files:
            folder.mkdir()
            (folder / late_files.pop()).touch()

    monkeypatch.setattr(worker.shutil, "rmtree", remove_and_write)
    worker.remove(str(folder))
    assert not late_files
    assert not folder.exists()


def test_a_folder_that_is_not_there_is_removed(tmp_path):
    worker.remove(str(tmp_path / "folder"))
