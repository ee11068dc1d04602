"""Brings the README and other files of the repository into the site.

Pages are read on GitHub too, where links lead to any file. In the site README.md is the home
page, and a link to a file outside docs/ leads to a page made of that file: Markdown as it is,
code and notebooks as listings. So the site is complete, and its links are valid in both places.
"""

import json
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
HOME = "README.md"
ALONE = (HOME, "docs/tutorial.md")  # in their sections: nothing to navigate to
WITH_LINKS = (".md", ".ipynb")
LINK = re.compile(r"(?<=\]\()[^)\s#:]+(?=[)#])")  # relative ones, without their anchors
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the home page and a page for every file that a page links to."""
    waiting = [HOME, *(f"docs/{file.src_uri}" for file in files.documentation_pages())]
    seen = set(waiting)
    while waiting:
        path = waiting.pop()
        content = as_page(ROOT / path)
        if not path.startswith("docs/"):
            files.append(File.generated(config, site_path(path), content=content))
        if path.endswith(WITH_LINKS):
            found = {resolve(path, link) for link in links_of(content)} - seen
            outside = {link for link in found if not link.startswith("docs/")}
            waiting += sorted(link for link in outside if (ROOT / link).is_file())
            seen |= found
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Replaces links to files of the repository by links to their pages."""
    path = repository_path(page.file.src_uri)
    if path in ALONE:
        page.meta["hide"] = ["navigation"]
    if not path.endswith(WITH_LINKS):
        return markdown
    here = posixpath.dirname(page.file.src_uri)

    def replaced(link: re.Match[str]) -> str:
        target = resolve(path, link[0])
        is_file = (ROOT / target).is_file()
        return posixpath.relpath(site_path(target), here or ".") if is_file else link[0]

    parts = FENCED.split(markdown)
    parts[::2] = [LINK.sub(replaced, text) for text in parts[::2]]
    return "".join(parts)


def links_of(text: str) -> list[str]:
    """The relative links of Markdown, without those in listings."""
    return LINK.findall("".join(FENCED.split(text)[::2]))


def resolve(path: str, link: str) -> str:
    """The path in the repository that a link of a file means."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))


def site_path(path: str) -> str:
    """The source path in the site of a file of the repository."""
    if path == HOME:
        return "index.md"
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"repository/{path}" if path.endswith(".md") else f"repository/{path}.md"


def repository_path(source: str) -> str:
    """The inverse of `site_path`."""
    if source == "index.md":
        return HOME
    if source.startswith("repository/"):
        path = source.removeprefix("repository/")
        return path if (ROOT / path).is_file() else path.removesuffix(".md")
    return f"docs/{source}"


def as_page(file: Path) -> str:
    """A file as Markdown."""
    text = file.read_text()
    if file.suffix == ".md":
        return text
    name = file.relative_to(ROOT).as_posix()
    if file.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        return "\n\n".join(as_markdown(cell) for cell in cells)
    return f"# {name}\n\n```{file.suffix.removeprefix('.')}\n{text}```\n"


def as_markdown(cell: dict[str, object]) -> str:
    """A cell of a notebook as Markdown."""
    source = "".join(cell["source"])  # type: ignore[arg-type]
    return f"```python\n{source}\n```" if cell["cell_type"] == "code" else source
