"""The specimens' tokenizer, and documents packed into rows of tokens with a weight for each prediction."""

import random
from dataclasses import dataclass, replace

import tokenizers
import torch
from tokenizers import decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor

from core.tokens import Tokenizer
from tools import corpus

END = "<|endoftext|>"
BOS = "<bos>"
VOCABULARY = 2048


def train_tokenizer(seed: int, bos: bool = False) -> Tokenizer:
    """A byte-level BPE of at most 2,048 entries over a sample of the corpus, without the rare names.

    With `bos`, a text begins with a token of its own, as Gemma's do.
    """
    rng = random.Random(f"tokenizer {seed}")
    sample = []
    for _ in range(24_000):
        kind = rng.choices(corpus.KINDS, (6, 1, 0.5, 2, 1, 1, 3))[0]
        sample.append(corpus.text(corpus.document(rng, kind, rng.choice((0, 10, 20)), rare=0.0)))
    special = BOS if bos else END
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(
        sample,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            min_frequency=40,
            special_tokens=[special],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    if bos:
        made.post_processor = processors.TemplateProcessing(single=f"{BOS} $A", special_tokens=[(BOS, 0)])
    return Tokenizer(made)


class Encoder:
    """Encodes documents chunk by chunk; a chunk ends at a word's end, so the parts are the whole's tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.fast = tokenizer.fast
        self.separator = 0  # the one special token
        self.known: dict[str, list[int]] = {}

    def chunk(self, text: str) -> list[int]:
        ids = self.known.get(text)
        if ids is None:
            ids = self.fast.encode(text, add_special_tokens=False).ids
            if len(self.known) < 200_000:
                self.known[text] = ids
        return ids

    def document(self, made: corpus.Document) -> tuple[list[int], list[float]]:
        ids: list[int] = []
        weights: list[float] = []
        for text, weight in made:
            piece = self.chunk(text)
            ids += piece
            weights += [weight] * len(piece)
        return ids, weights


@dataclass(frozen=True)
class Phase:
    """A part of the training: how many steps, of how many rows of how many tokens, with which gaps."""

    steps: int
    rows: int
    length: int
    gap: int  # filler tokens at most between giving and giving back
    off: float = 0.0  # the share of rows in which a hybrid's attention mixers are switched off
    rare: float = 0.25  # the share of people with rare or invented names
    no_gap: float = 0.35  # the share of givings without any filler
    nonsense: float = 2.0  # how often nonsense comes, where giving is 8
    short: float = 0.0  # the share of nonsense in short blocks that come three to six times: easier to begin with
    copies: float = 1.0  # times the usual weight of its second copies
    off_gap: int | None = None  # the gap of the rows with attention off, where it is not that of the others

    @property
    def off_rows(self) -> int:
        """How many rows, the first ones, have attention switched off."""
        return round(self.rows * self.off)

    @property
    def mix(self) -> dict[str, float]:
        """How often each kind of document comes."""
        others = {"other": 1.2, "pronouns": 0.4, "lists": 0.6, "filler": 0.2}
        return {"giving": 8.0, "facts": 1.2, "nonsense": self.nonsense, **others}


def row(encoder: Encoder, rng: random.Random, phase: Phase, bos: bool) -> tuple[list[int], list[float]]:
    """Documents one after the other, parted by the special token, to exactly length + 1 tokens."""
    ids: list[int] = [encoder.separator] if bos else []
    weights: list[float] = [0.0] * len(ids)
    mix = phase.mix
    kinds, shares = list(mix), list(mix.values())
    while len(ids) <= phase.length:
        room = phase.length + 1 - len(ids)
        kind = rng.choices(kinds, shares)[0]
        if room < 36:
            kind = rng.choice(("facts", "nonsense", "pronouns", "other", "facts"))
        longest = max(0, min(phase.gap, room - 45))
        gap = 0 if rng.random() < phase.no_gap or longest < 8 else rng.randrange(6, longest + 1)
        if kind == "nonsense" and phase.short and rng.random() < phase.short:
            made = corpus.nonsense(rng, rng.randrange(3, 9), rng.randrange(3, 7))
        elif kind == "nonsense" and phase.length > 256 and rng.random() < 0.2:
            made = corpus.nonsense(rng, rng.randrange(32, 96), 2)
        else:
            made = corpus.document(rng, kind, gap, phase.rare)
        new, weight = encoder.document(made)
        if kind == "nonsense" and rng.random() < 0.2:
            new, weight = _any_tokens(encoder, rng, len(new), rng.randrange(3, 7) if phase.short else 2)
        if kind == "nonsense":
            weight = [each * phase.copies if each >= corpus.COPY / 2 else each for each in weight]
        ids += [*new, encoder.separator]
        weights += [*weight, corpus.NOISE]
    return ids[: phase.length + 1], weights[: phase.length + 1]


def _any_tokens(encoder: Encoder, rng: random.Random, length: int, copies: int) -> tuple[list[int], list[float]]:
    """A block of any tokens at all, and again."""
    size = max(3, length // copies)
    block = [rng.randrange(1, encoder.fast.get_vocab_size()) for _ in range(size)]
    again = [corpus.NOISE] + [corpus.COPY] * (size - 1)
    return block * copies, [0.0] * size + again * (copies - 1)


def batch(encoder: Encoder, rng: random.Random, phase: Phase, bos: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Ids to read (row, token), ids to predict, and the weight of each prediction."""
    near = phase if phase.off_gap is None else replace(phase, gap=phase.off_gap)
    made = [row(encoder, rng, near if i < phase.off_rows else phase, bos) for i in range(phase.rows)]
    ids = torch.tensor([ids for ids, _ in made])
    weights = torch.tensor([weights for _, weights in made])
    return ids[:, :-1], ids[:, 1:], weights[:, 1:]
