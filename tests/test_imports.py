"""The house: which module may import which, late imports and names in strings included."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = "episodic_curiosity"
# A room imports itself and those before it.
ROOMS = (
    "support",
    "worlds",
    "reachability",
    "bonus",
    "agent",
    "runs",
    "experiments",
    "show",
    "adapters",
    "cli",
    "testing",
)
FAMILIES = ("maze", "dmlab", "vizdoom", "ant", "gymnasium")
# What families import; it imports none of them.
SHARED = ("base", "family", "lab", "processes", "scenery", "television")
IN_STRING = re.compile(rf"({PACKAGE}(?:\.\w+)+)(:\w+)?")  # a module, or something in it


def find_modules(root: Path) -> dict[str, Path]:
    """Every module of the package, by its dotted name."""
    names = {}
    for path in root.glob(f"{PACKAGE}/**/*.py"):
        parts = path.relative_to(root).with_suffix("").parts
        names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return names


def imported(name: str, path: Path, modules: dict[str, Path]) -> set[str]:
    """What a module names of the package, wherever in its code, and in strings."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: -node.level + 1 or None] if node.level else []
            source = ".".join([*above, *(node.module or "").split(".")]).strip(".")
            full = {f"{source}.{alias.name}" for alias in node.names}
            found |= full & modules.keys() or {source}
        elif isinstance(node, ast.Constant) and (match := IN_STRING.fullmatch(str(node.value))):
            found.add(match[1])
    return (found & modules.keys()) - {name}


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    modules = find_modules(ROOT)
    assert len(modules) > 100
    return {name: imported(name, path, modules) for name, path in modules.items()}


def part(module: str, depth: int) -> str | None:
    parts = module.split(".")
    return parts[depth] if depth < len(parts) else None


def test_every_module_is_in_a_room(graph):
    assert {part(module, 1) for module in graph} == {*ROOMS, None, "__main__"}
    files = [path.relative_to(ROOT) for path in (ROOT / PACKAGE).rglob("*") if path.is_file()]
    entries = {path.parts[1] for path in files if "__pycache__" not in path.parts}
    assert entries <= {*ROOMS, "__init__.py", "__main__.py", "py.typed", "pretrained"}


def test_a_room_imports_those_before_it_alone(graph):
    wrong = [
        f"{module} imports {other}"
        for module, others in graph.items()
        if (room := part(module, 1)) in ROOMS
        for other in others
        if part(other, 1) not in ROOMS[: ROOMS.index(room) + 1]
    ]
    assert wrong == []


def test_no_family_imports_another(graph):
    wrong = [
        f"{module} imports {other}"
        for module, others in graph.items()
        if part(module, 1) == "worlds" and (own := part(module, 2)) in FAMILIES + SHARED
        for other in others
        if part(other, 1) == "worlds" and part(other, 2) in FAMILIES and part(other, 2) != own
    ]
    assert wrong == []


def test_there_is_no_cycle(graph):
    assert find_cycle(graph) is None


def find_cycle(graph: dict[str, set[str]]) -> list[str] | None:
    """The modules of one cycle, in their order; None where there is none."""
    done: set[str] = set()

    def visit(path: list[str]) -> list[str] | None:
        for other in sorted(graph[path[-1]] - done):
            if other in path:
                return path[path.index(other) :]
            if cycle := visit([*path, other]):
                return cycle
        done.add(path[-1])
        return None

    return next((cycle for name in sorted(graph) if (cycle := visit([name]))), None)


def test_what_this_test_sees(tmp_path):
    """Late, relative and quoted imports, of modules and of what is in them."""
    sources = {
        "__init__.py": "",
        "a.py": "def f():\n    from episodic_curiosity.b import x\n",
        "b.py": "from . import c",
        "c.py": "NAME = 'episodic_curiosity.a:f'",
        "d/__init__.py": "",
        "d/e.py": "from episodic_curiosity import a\nfrom ..b import y\nimport json",
    }
    for name, source in sources.items():
        path = tmp_path / PACKAGE / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
    modules = find_modules(tmp_path)
    found = {
        name.removeprefix(f"{PACKAGE}."): {
            other.removeprefix(f"{PACKAGE}.") for other in imported(name, path, modules)
        }
        for name, path in modules.items()
    }
    assert found == {
        PACKAGE: set(),
        "a": {"b"},
        "b": {"c"},
        "c": {"a"},
        "d": set(),
        "d.e": {"a", "b"},
    }
    assert find_cycle(found) == ["a", "b", "c"]
    assert find_cycle(found | {"c": set()}) is None
