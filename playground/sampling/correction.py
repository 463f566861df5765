"""Which commits are taken back. Must not know models, tokens or schedules.

`causal`: some denoisers can say, in the forward that predicts the masks, how probable each committed token is when the
text before it is read from left to right. Commits were made in parallel, blind to each other; read this way they are
checked against each other. The first that is too improbable is replaced by what stands there best, and what was chosen
behind it in the same forward or later, with a wrong neighbour, is masked again. The rule for "too improbable" is
relative to the best token, in the manner of Medusa's typical acceptance (arXiv 2401.10774); at 1 it is greedy
speculative decoding (arXiv 2211.17192), and the text is the one that left-to-right decoding writes.
"""

from __future__ import annotations

from torch import Tensor


def first_rejected(probabilities: Tensor, tokens: Tensor, acceptance: float) -> int | None:
    """Index of the first token whose probability is under `acceptance` times the best one's; None if there is none.

    Args:
        probabilities: `[n, vocabulary]`, each row the distribution at one position given all text before it.
        tokens: what was committed there, `[n]`.
    """
    theirs = probabilities.gather(-1, tokens[:, None])[:, 0]
    rejected = (theirs < acceptance * probabilities.amax(-1)).nonzero()
    return int(rejected[0, 0]) if rejected.numel() else None
