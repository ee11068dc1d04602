"""The folder of compiled levels, with several processes at it."""

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from episodic_curiosity.worlds.dmlab.level_cache import LevelCache

KEY = "maps/explore_maze with / and \0 in it"


def test_a_level_is_found_once_it_is_written(tmp_path):
    cache = LevelCache(tmp_path / "a" / "levels")
    compiled, wanted = tmp_path / "compiled", tmp_path / "wanted"
    compiled.write_bytes(b"a level")
    assert cache.fetch(KEY, str(wanted)) is False
    assert not wanted.exists()
    cache.write(KEY, str(compiled))
    assert cache.fetch(KEY, str(wanted)) is True
    assert wanted.read_bytes() == b"a level"
    assert cache.fetch("another", str(wanted)) is False


def write_and_fetch(folder: Path, number: int) -> list[bytes]:
    cache = LevelCache(folder / "levels")
    mine = folder / f"mine_{number}"
    mine.write_bytes(bytes([number]) * 1_000_000)
    seen = []
    for key in map(str, range(20)):
        if cache.fetch(key, str(mine)):
            seen.append(mine.read_bytes())
        cache.write(key, str(mine))
    return seen


def test_nobody_reads_half_a_level(tmp_path):
    with ProcessPoolExecutor(4) as pool:
        seen = pool.map(write_and_fetch, [tmp_path] * 4, range(4))
    for level in (level for levels in seen for level in levels):
        assert len(level) == 1_000_000
        assert len(set(level)) == 1
    files = list((tmp_path / "levels").iterdir())
    assert sorted(file.suffix for file in files) == ["", *[".pk3"] * 20]
