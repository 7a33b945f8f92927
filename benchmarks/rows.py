"""A small index in memory over the pure rules of the search room: what the recall measures ask their questions of."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from sidecar.search.bm25 import Posting
from sidecar.search.channels import Channel, Lexicon, Weights, meaning_channels, words_channels
from sidecar.search.context import ALONE, neighbours
from sidecar.search.terms import Analyzer


class Rows:
    """The texts of one owner, with the number of the conversation of each and its place there."""

    def __init__(
        self,
        texts: Sequence[str],
        *,
        language: str = "english",
        conversations: Sequence[int] | None = None,
        vectors: np.ndarray | None = None,
    ) -> None:
        self.analyzer = Analyzer(language)
        self.lexicon = lexicon_of([self.analyzer.analyse(text) for text in texts])
        talk = np.array(conversations if conversations is not None else [ALONE] * len(texts), np.int64)
        self.around = neighbours(talk, np.arange(len(texts), dtype=np.int64))
        self.alone = neighbours(np.full(len(texts), ALONE, np.int64), np.arange(len(texts), dtype=np.int64))
        self.vectors = vectors
        self.ties = np.arange(len(texts))

    def channels(self, query: str, vector: np.ndarray | None, weights: Weights) -> dict[str, Channel]:
        """What each channel says of a query."""
        words = self.analyzer.query(query).words
        found = words_channels(words, self.lexicon, self.around, weights)
        if vector is not None and self.vectors is not None:
            found |= meaning_channels(self.vectors @ vector, self.around, weights)
        return found


def lexicon_of(analyses) -> Lexicon:
    """The postings and lengths of analysed texts."""
    places: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row, analysis in enumerate(analyses):
        for term, count in Counter(analysis.terms).items():
            places[term].append((row, count))
    postings = {
        term: Posting(np.array([row for row, _ in held]), np.array([float(count) for _, count in held]))
        for term, held in places.items()
    }
    return Lexicon(postings, np.array([float(analysis.length) for analysis in analyses]))
