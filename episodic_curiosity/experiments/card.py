"""The card of a shared agent: what it is, how it was trained and what it scores.

`card.json` is read by programs, `README.md` is the same for people.
"""

from collections.abc import Iterator
from typing import Any

from episodic_curiosity.bonus.registry import find_method
from episodic_curiosity.support.shared import PARTS

README = "README.md"
HUB_HEADER = """---
library_name: episodic-curiosity
license: apache-2.0
tags: [reinforcement-learning, exploration, curiosity]
---
"""


def render(card: dict[str, Any]) -> str:
    """The card as Markdown, with the header that the Hugging Face Hub reads."""
    where, name = card["where"], card["name"]
    parts = [words for part, words in PARTS.items() if f"{part}.safetensors" in card["files"]]
    fit = f"curiosity train --task {card['task']} --method ppo+ec"
    if card["view_shape"] and len(card["view_shape"]) == 3:
        fit += " --world.view-size {} {}".format(*card["view_shape"][1:])
    uses = {
        "agent": f"curiosity watch {where} --out film.gif",
        "R-network": f"{fit} --r-network-from {where}",
    }
    lines = [
        HUB_HEADER + f"# {name}",
        "",
        f"The {' and the '.join(parts)} of a run of `{card['method']}` on `{card['task']}`.",
        "",
        "| | |",
        "|---|---|",
        *(f"| {row} | {value} |" for row, value in _facts(card)),
        "",
        "## Scores",
        "",
        *_scores(card["scores"]),
        "",
        f"Measured on these {card['dtype']} files, on {card['measured_on']}, with:",
        "```",
        *(score["command"] for score in card["scores"]),
        "```",
        "",
        "## Trained with",
        "",
        "```",
        card["command"],
        "```",
        "",
        "## Use",
        "",
        "```",
        *(command for part, command in uses.items() if part in parts),
        "```",
        "",
    ]
    return "\n".join(lines)


def _facts(card: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "task", f"`{card['task']}`"
    yield "method", f"`{card['method']}` ({find_method(card['method']).line})"
    yield "preset", f"`{card['preset']}`"
    done, total = card["steps"], card["steps_of_the_run"]
    yield "steps", f"{done:,}" if done == total else f"{done:,} of {total:,}, then stopped"
    yield "seed", str(card["seed"])
    yield (
        "sources",
        f"commit {card['commit']}" if card["commit"] else f"{card['sources']}, of no commit",
    )
    yield "weights", f"{card['dtype']}, {card['bytes'] / 1e6:.2f} MB; computes in float32"


def _scores(scores: list[dict[str, Any]]) -> Iterator[str]:
    yield "| task, unseen levels | measure | mean | 95 % interval | of |"
    yield "|---|---|---:|---:|---:|"
    for score in scores:
        for measure, short in score.get("summary", {}).items():
            cells = (f"{short['mean']:.2f}", f"{short['low']:.2f} to {short['high']:.2f}")
            number = f"{short['num_values']} episodes"
            yield f"| `{score['task']}` | {' | '.join((measure, *cells, number))} |"
        if "r_network_accuracy" in score:
            cells = (f"{score['r_network_accuracy']:.1%}", "")
            number = f"{score['steps']:,} steps of random play"
            measure = "accuracy of the R-network"
            yield f"| `{score['task']}` | {' | '.join((measure, *cells, number))} |"
