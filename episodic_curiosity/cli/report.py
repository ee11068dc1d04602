"""`curiosity report`."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from episodic_curiosity.support.checks import printable

PAGE = Path("report.html")
File = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What `curiosity report` takes."""

    results: tyro.conf.Positional[Path]  # the folder that `curiosity table` writes to
    out: File = None  # the page; None: report.html, unless only Markdown is asked for
    markdown: File = None  # the tables alone, for the documentation


def report(arguments: list[str]) -> None:
    """Lays results beside the published numbers, on a page for a browser."""
    options = tyro.cli(
        ReportOptions, args=arguments, prog="curiosity report", description=report.__doc__
    )
    if options.out and options.out.suffix == ".md":
        raise ValueError(f"--out is for a page, got {options.out}; use --markdown for that")
    if options.markdown and options.markdown.suffix == ".html":
        raise ValueError(
            f"--markdown is for tables, got {options.markdown}; use --out for that"
        )
    page = options.out or (None if options.markdown else PAGE)
    if page and options.markdown and page.resolve() == options.markdown.resolve():
        raise ValueError(f"--out and --markdown must be two files, got {page} for both")
    from episodic_curiosity.support.saving import check_writable, write_atomically

    for path in (page, options.markdown):
        if path is not None:
            check_writable(path)
    from episodic_curiosity.show.report.grids import lay_out
    from episodic_curiosity.show.report.markdown import results_markdown
    from episodic_curiosity.show.report.results_page import results_page

    layout = lay_out(options.results)
    for problem in layout.problems:
        print(printable(f"curiosity: not counted: {problem.reason}"), file=sys.stderr)
    files = {}
    if page:
        files[page] = results_page(layout, options.results)
    if options.markdown:
        command = shlex.join(["curiosity", "report", *arguments])
        files[options.markdown] = results_markdown(layout, options.results, command)
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically({path: content.encode()})
        print(path)
