"""Columns of many different words or of text as a fixed number of features.

Hashes are those of scikit-learn (MurmurHash3), the same on every machine. No label is used.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils import murmurhash3_32

#: How many features a column of many words, and one of text, becomes.
WORD_FEATURES, TEXT_FEATURES = 128, 256
#: Of a longer text the beginning counts.
_LONGEST_TEXT = 10_000
_TEXTS_AT_ONCE = 4096


def hash_of_word(word: str, size: int) -> int:
    """The feature of a word, from 0 to ``size - 1``.

    Example:
        >>> hash_of_word("Bonn", 128)
        103
    """
    return int(murmurhash3_32(word.encode("utf-8", "replace"), positive=True)) % size


def document_weights(texts: Sequence[str]) -> list[float]:
    """The logarithm of how rare the words of each hash are, as in TF-IDF of scikit-learn."""
    documents = np.zeros(TEXT_FEATURES)
    for _, counts in _counted(texts, TEXT_FEATURES):
        documents += counts.getnnz(axis=0)
    weights: list[float] = (np.log((1 + len(texts)) / (1 + documents)) + 1).tolist()
    return weights


def encode_texts(texts: Sequence[str], weights: Sequence[float], out: NDArray[np.float32]) -> None:
    """Write TF-IDF features of unit length to ``out`` ``[N, F]``, some rows at a time."""
    for begin, counts in _counted(texts, len(weights)):
        scaled = normalize(counts.multiply(np.asarray(weights)).tocsr())
        out[begin : begin + scaled.shape[0]] = scaled.toarray()


def _counted(texts: Sequence[str], size: int) -> Iterator[tuple[int, csr_matrix]]:
    """How often words of each hash are in some texts, and the number of the first text."""
    counter = HashingVectorizer(n_features=size, alternate_sign=False, norm=None)
    for begin in range(0, len(texts), _TEXTS_AT_ONCE):
        part = [text[:_LONGEST_TEXT] for text in texts[begin : begin + _TEXTS_AT_ONCE]]
        yield begin, counter.transform([t.encode("utf-8", "replace").decode() for t in part])
