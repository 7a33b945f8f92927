"""How well paragraphs are found by the questions that they answer, in every language at hand.

    python -m benchmarks.recall_xquad DATA_FOLDER [--model minilm]

The folder (or the environment variable LOREKEEPER_XQUAD) holds one ``<language>.json`` a language: ``paragraphs``, a
list of texts, and ``questions``, a list of ``question`` and ``paragraph`` (its index). Words are measured twice, with
the save in that language and with the save in English, as in a game that speaks several. With a model, the hybrid is
measured too: it must never be below its better channel.
"""

from __future__ import annotations

import argparse
import json
import os
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from benchmarks.embedder import Embed, embedder
from benchmarks.measures import means, table
from benchmarks.rows import Rows
from sidecar.cli.locomo import recall_at
from sidecar.embedding.identity import EmbeddingKind
from sidecar.search.channels import ALONE_WEIGHTS
from sidecar.search.fusion import ranked, weighted_sum

GOAL = 0.97


def measure(data: dict, language: str, embed: Embed | None) -> dict[str, list[float]]:
    """R@1 and R@5 by channel."""
    paragraphs, questions = data["paragraphs"], data["questions"]
    rows = Rows(paragraphs, language=language, vectors=embed(EmbeddingKind.DOCUMENT, paragraphs) if embed else None)
    texts = [asked["question"] for asked in questions]
    vectors = embed(EmbeddingKind.QUERY, texts) if embed else [None] * len(texts)
    recalls: dict[str, list[list[float]]] = {}
    for asked, text, vector in zip(questions, texts, vectors, strict=True):
        channels = rows.channels(text, vector, ALONE_WEIGHTS)
        orders = {name: np.where(one.found, one.scores, -np.inf) for name, one in channels.items()}
        if embed:
            orders["hybrid"] = weighted_sum(channels.values())
        for name, scores in orders.items():
            order = ranked(scores, rows.ties, limit=5).tolist()
            recalls.setdefault(name, []).append([recall_at(order, [asked["paragraph"]], k) for k in (1, 5)])
    return {name: means(each) for name, each in recalls.items()}


def report(folder: Path, embed: Embed | None) -> tuple[str, bool]:
    """The table of all languages, and whether the words reach the goal in each."""
    lines, reached = [], True
    for path in sorted(folder.glob("*.json")):
        data = json.loads(path.read_text("utf-8"))
        for save in dict.fromkeys((path.stem, "en")):
            found = measure(data, save, embed if save == path.stem else None)
            lines += [(f"{path.stem}, save in {save}: {name}", values) for name, values in found.items()]
            reached &= found["words"][1] >= GOAL
    return table(("language and channel", "R@1", "R@5"), lines), reached


def main() -> None:
    """Prints the table; fails when the words miss the goal in a language."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default=os.environ.get("LOREKEEPER_XQUAD"))
    parser.add_argument("--model", help="the name of a model, or a model folder's absolute path")
    asked = parser.parse_args()
    if not asked.folder:
        parser.error("name the data folder, or set LOREKEEPER_XQUAD")
    with embedder(asked.model) if asked.model else nullcontext() as embed:
        lines, reached = report(Path(asked.folder), embed)
    print(lines)
    if not reached:
        raise SystemExit(f"the words miss the goal of R@5 {GOAL}")


if __name__ == "__main__":
    main()
