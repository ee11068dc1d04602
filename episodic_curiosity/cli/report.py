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
    """Options of `curiosity report`."""

    results: tyro.conf.Positional[Path]  # the results folder of `curiosity table`
    out: File = None  # the HTML page; None: report.html, or no page if --markdown is given
    markdown: File = None  # the tables in Markdown, for the documentation


def report(arguments: list[str]) -> None:
    """Compares results with the published numbers on an HTML page."""
    options = tyro.cli(
        ReportOptions, args=arguments, prog="curiosity report", description=report.__doc__
    )
    if options.out and options.out.suffix == ".md":
        raise ValueError(f"--out is for an HTML page, got {options.out}; use --markdown")
    if options.markdown and options.markdown.suffix == ".html":
        raise ValueError(
            f"--markdown is for Markdown tables, got {options.markdown}; use --out"
        )
    page = options.out or (None if options.markdown else PAGE)
    if page and options.markdown and page.resolve() == options.markdown.resolve():
        raise ValueError(f"--out and --markdown must be different files, got {page} for both")
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
