"""The ways of finding, one channel each: own words, own meaning, and both in the light of the conversation.

A channel says, for each record that a query may see, how well it answers (its score), whether that counts as found, and
how far it stands out (its normalised score). Normalising is what makes channels comparable and keeps a weak one from
spoiling a strong one: a channel with a peak far above its mean decides, one that finds everything equally good hardly
matters. A model that does not know the language of a save is such a channel.

Rows are numbers 0 to n-1. A channel that knows nothing of a row, such as one without a vector, says NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sidecar.search.bm25 import B_CONTEXT, Posting, bm25, whole_score
from sidecar.search.context import Neighbours, lengths_in_context, posting_in_context, similarities_in_context
from sidecar.search.terms import Word

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

#: Shares of the best score are raised to this power, deviations of similarity to 1.5: one good answer outweighs several
#: middling ones.
EMPHASIS_OF_WORDS = 1.25
#: The normalised score of the row that the words answer best; a similarity reaches it 6 deviations above the mean.
BEST_WORDS = 15.0
#: Where even the best row holds less than this share of the query's words (by rarity), it does not count as best.
FULL_ANSWER = 0.4
#: A spread of cosine similarities below this is noise.
LEAST_SPREAD = 0.05
#: Similarities are compared at this many decimals: beyond, they hang on the order in which a processor adds.
SIMILARITY_DECIMALS = 6


@dataclass(frozen=True)
class Weights:
    """The weight of each channel in a fused score; 0 leaves the channel out."""

    words: float
    meaning: float
    context_words: float = 0.0
    context_meaning: float = 0.0


#: For records that stand alone.
ALONE_WEIGHTS = Weights(words=1.0, meaning=0.5)
#: Where some of the records are turns of a conversation: their own words are among their words in context.
TALK_WEIGHTS = Weights(words=0.2, meaning=0.5, context_words=1.0, context_meaning=1.0)
#: For reciprocal rank.
EQUAL_WEIGHTS = Weights(words=1.0, meaning=1.0)


@dataclass(frozen=True)
class Channel:
    """What one way of finding says of each row."""

    scores: Floats
    found: Bools
    normalised: Floats
    weight: float
    #: The rows that count with what it says of them, if these are more than those that it found.
    counted: Bools | None = None
    #: The place of each row that was found, where only places count.
    places: Ints | None = None

    def of(self, row: int) -> tuple[float, int, float] | None:
        """Score, place (equal ones share theirs unless places count) and normalised score of a row; None for one that
        does not count."""
        counted = self.found if self.counted is None else self.counted
        if not counted[row]:
            return None
        return float(self.scores[row]), self._place(row), float(self.normalised[row])

    def _place(self, row: int) -> int:
        import numpy as np

        if self.places is not None:
            return int(self.places[row])
        return 1 + int(np.count_nonzero(self.scores > self.scores[row]))


@dataclass(frozen=True)
class Lexicon:
    """The words of the rows: the postings of (at least) a query's terms, and each row's length in words."""

    postings: Mapping[str, Posting]
    lengths: Floats


def default_weights(*, talks: bool) -> Weights:
    """The weights of a query that names none; ``talks``: some rows are neighbours in a conversation."""
    return TALK_WEIGHTS if talks else ALONE_WEIGHTS


def words_channels(words: Sequence[Word], lexicon: Lexicon, around: Neighbours, weights: Weights) -> dict[str, Channel]:
    """Own words and words in context, by the names of ``Weights``; those of weight 0 are left out."""
    whole = whole_score(words, lexicon.postings, len(lexicon.lengths))
    channels = {}
    if weights.words:
        scores = bm25(words, lexicon.postings, lexicon.lengths)
        channels["words"] = words_channel(scores, whole, weights.words)
    if weights.context_words:
        nearby = lexicon_in_context(words, lexicon, around)
        scores = bm25(words, nearby.postings, nearby.lengths, b=B_CONTEXT)
        channels["context_words"] = words_channel(scores, whole, weights.context_words)
    return channels


def lexicon_in_context(words: Sequence[Word], lexicon: Lexicon, around: Neighbours) -> Lexicon:
    """The lexicon of the query's words when each row also holds, at their weight, the words of its neighbours."""
    terms = {term for word in words for term in word} & lexicon.postings.keys()
    postings = {term: posting_in_context(lexicon.postings[term], around) for term in terms}
    return Lexicon(postings, lengths_in_context(lexicon.lengths, around))


def meaning_channels(
    similarities: Floats, around: Neighbours, weights: Weights, *, floor: float | None = None
) -> dict[str, Channel]:
    """Own meaning and meaning in context, by the names of ``Weights``; those of weight 0 are left out."""
    channels = {}
    if weights.meaning:
        channels["meaning"] = meaning_channel(similarities, weights.meaning, floor=floor)
    if weights.context_meaning:
        mean = similarities_in_context(similarities, around)
        channels["context_meaning"] = meaning_channel(mean, weights.context_meaning, floor=floor)
    return channels


def words_channel(scores: Floats, whole: float, weight: float) -> Channel:
    """BM25 scores as a channel: it found what scores above 0, and what scores best stands out most.

    ``whole`` is what a row would score that answers the whole query (``bm25.whole_score``).
    """
    import numpy as np

    best = max(float(scores.max(initial=0.0)), FULL_ANSWER * whole)
    shares = scores / (best or 1.0)
    # The same as ** EMPHASIS_OF_WORDS, in a tenth of the time.
    return Channel(scores, scores > 0, BEST_WORDS * shares * np.sqrt(np.sqrt(shares)), weight)


def meaning_channel(similarities: Floats, weight: float, *, floor: float | None = None) -> Channel:
    """Cosine similarities as a channel: it found each row that has a vector and reaches the floor, if there is one.
    Rows below the floor that words found count all the same with what meaning says of them."""
    import numpy as np

    scores: Floats = similarities.clip(-1.0, 1.0).round(SIMILARITY_DECIMALS)
    known = ~np.isnan(scores)
    found = known if floor is None else known & (scores >= floor)
    return Channel(scores, found, normalised_meaning(scores), weight, counted=known)


def normalised_meaning(similarities: Floats) -> Floats:
    """How far each similarity stands from the mean of all, in standard deviations, emphasised; 0 for NaN.

    A spread of less than LEAST_SPREAD is taken for it, so that similarities that hardly differ stay near each other.
    """
    import numpy as np

    missing = np.isnan(similarities)
    known = similarities[~missing] if missing.any() else similarities
    if not len(known):
        return np.zeros(len(similarities))
    distance = (similarities - known.mean()) / max(float(known.std()), LEAST_SPREAD)
    if known is not similarities:
        distance = np.nan_to_num(distance)
    emphasised: Floats = distance * np.sqrt(np.abs(distance))
    return emphasised
