"""Files that hang, that lead elsewhere, that are too large."""

import os

import pytest

from episodic_curiosity.support.files import (
    UnfitFileError,
    append_to_file,
    change_file,
    check_own,
    create_file,
    read_file,
    remove_folder,
)


def test_a_file_is_read_up_to_its_bound(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    assert read_file(tmp_path / "a", 5) == b"12345"
    with pytest.raises(UnfitFileError, match="must have at most 4 bytes, got 5"):
        read_file(tmp_path / "a", 4)
    with pytest.raises(FileNotFoundError):
        read_file(tmp_path / "nowhere", 5)


@pytest.mark.parametrize("opened", [read_file, append_to_file, change_file])
def test_what_is_no_regular_file_is_refused(tmp_path, opened):
    os.mkfifo(tmp_path / "pipe")
    arguments = (5,) if opened is read_file else ()
    with pytest.raises(UnfitFileError, match="pipe is not a regular file"):
        opened(tmp_path / "pipe", *arguments)
    with pytest.raises(UnfitFileError, match="/dev/null is not a regular file"):
        opened(type(tmp_path)("/dev/null"), *arguments)


@pytest.mark.parametrize("there", [None, "file", "link", "pipe"])
def test_a_new_file_takes_the_place_of_whatever_had_its_name(tmp_path, there):
    path, victim = tmp_path / "new", tmp_path / "victim"
    victim.write_text("precious")
    if there == "file":
        path.write_text("longer than what follows")
    elif there == "link":
        path.symlink_to(victim)
    elif there == "pipe":
        os.mkfifo(path)
    with create_file(path) as file:
        file.write(b"content")
    assert path.read_bytes() == b"content"
    assert not path.is_symlink()
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("opened", [append_to_file, change_file])
def test_links_are_not_written_through(tmp_path, opened):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "link").symlink_to(victim)
    with pytest.raises(UnfitFileError, match=f"got a symbolic link to {victim}"):
        opened(tmp_path / "link")
    (tmp_path / "dangling").symlink_to(tmp_path / "made")
    with pytest.raises(UnfitFileError, match="dangling must be a file or folder"):
        opened(tmp_path / "dangling")
    assert not (tmp_path / "made").exists()


def test_appending_adds_and_changing_does_not(tmp_path):
    for content in (b"one ", b"two"):
        with append_to_file(tmp_path / "a") as file:
            file.write(content)
    with change_file(tmp_path / "a") as file:
        file.write(b"ONE")
        file.truncate(6)
    assert (tmp_path / "a").read_bytes() == b"ONE tw"


def test_a_link_to_a_folder_is_removed_without_the_folder(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "precious")
    with pytest.raises(UnfitFileError, match="link must be a file or folder"):
        check_own(tmp_path / "link")
    remove_folder(tmp_path / "link")
    assert (tmp_path / "precious" / "file").read_text() == "x"
    remove_folder(tmp_path / "precious")
    remove_folder(tmp_path / "precious")  # it may be gone already
    assert list(tmp_path.iterdir()) == []
