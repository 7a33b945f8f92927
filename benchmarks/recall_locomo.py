"""How well turns of long conversations are found by questions about them, by ranker and by type of question.

    python -m benchmarks.recall_locomo DATA.json [--model minilm]

The data (or the environment variable LOREKEEPER_LOCOMO) are conversations of LoCoMo; ``sidecar/cli/locomo.py`` says
what counts. Printed is the share of the evidence among the first k, averaged over questions. This measures the rules,
channel by channel; ``lorekeeper bench recall DATA.json`` measures the same through a real daemon.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.embedder import Embed, embedder
from benchmarks.measures import means, table
from benchmarks.rows import Rows
from sidecar.cli.locomo import DEPTHS, TYPES, Talk, read, recall_at
from sidecar.embedding.identity import EmbeddingKind
from sidecar.search.channels import ALONE_WEIGHTS, EQUAL_WEIGHTS, TALK_WEIGHTS, Weights
from sidecar.search.fusion import by_rank, ranked, weighted_sum

ALL = Weights(words=1, meaning=1, context_words=1, context_meaning=1)


def rankers(rows: Rows, text: str, vector: np.ndarray) -> dict[str, np.ndarray]:
    """The scores of each ranker for one question."""
    channels = rows.channels(text, vector, ALL)
    alone = rows.channels(text, vector, ALONE_WEIGHTS)
    equal = rows.channels(text, vector, EQUAL_WEIGHTS)
    return {
        "words": channels["words"].scores,
        "vectors": channels["meaning"].scores,
        "words in context": channels["context_words"].scores,
        "vectors in context": channels["context_meaning"].scores,
        "reciprocal rank of words and vectors": weighted_sum(by_rank(one, rows.ties) for one in equal.values()),
        "weighted sum without context": weighted_sum(alone.values()),
        "default, no model": weighted_sum(rows.channels(text, None, TALK_WEIGHTS).values()),
        "default": weighted_sum(rows.channels(text, vector, TALK_WEIGHTS).values()),
    }


def measure(talks: Iterator[Talk], embed: Embed) -> list[tuple[int, str, list[float]]]:
    """For each question and ranker: the question's type, the ranker, the recall at each depth."""
    results = []
    for talk in talks:
        texts = [f"{turn.speaker}: {turn.text}" for turn in talk.turns]
        sessions = [turn.session for turn in talk.turns]
        rows = Rows(texts, conversations=sessions, vectors=embed(EmbeddingKind.DOCUMENT, texts))
        vectors = embed(EmbeddingKind.QUERY, [question.text for question in talk.questions])
        for question, vector in zip(talk.questions, vectors, strict=True):
            for name, scores in rankers(rows, question.text, vector).items():
                order = ranked(scores, rows.ties, limit=max(DEPTHS)).tolist()
                results.append((question.kind, name, [recall_at(order, question.evidence, k) for k in DEPTHS]))
    return results


def report(results: list[tuple[int, str, list[float]]]) -> str:
    """All rankers over all questions, then the default by type of question."""
    names = dict.fromkeys(name for _, name, _ in results)
    everything = [(name, means(values for _, one, values in results if one == name)) for name in names]
    default = [(kind, values) for kind, name, values in results if name == "default"]
    kinds = [(TYPES[kind], [values for one, values in default if one == kind]) for kind in TYPES]
    by_type = [(f"{name} ({len(values)})", means(values)) for name, values in kinds if values]
    head = [f"@{k}" for k in DEPTHS]
    return "\n\n".join((table(("ranker", *head), everything), table(("default, by type", *head), by_type)))


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="?", default=os.environ.get("LOREKEEPER_LOCOMO"))
    parser.add_argument("--model", default="minilm", help="the name of a model, or a model folder's absolute path")
    asked = parser.parse_args()
    if not asked.data:
        parser.error("name the data file, or set LOREKEEPER_LOCOMO")
    with embedder(asked.model) as embed:
        print(report(measure(read(Path(asked.data)), embed)))


if __name__ == "__main__":
    main()
