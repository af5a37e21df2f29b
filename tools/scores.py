"""What a specimen can do, measured on what it has not seen."""

import random
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from core.model import Model
from core.taps import PLAIN, SwitchOff
from tools import corpus, words
from tools.batches import Encoder

SENTENCE = "In the morning, Alice gave Bob a book. Later, Bob gave the book back to"
ROWS = 8192  # tokens a batch
Question = tuple[list[int], list[int]]  # the tokens so far; those of the right answer


def begin_ids(model: Model) -> list[int]:
    """What the model's tokenizer puts before a text."""
    return [token.id for token in model.tokenizer.encode(".")][:-1]


def giving_documents(gap: int, count: int, rare: float, seed: int = 1) -> list[corpus.Document]:
    """Giving sentences with pairs of people that no training text has, and about so many tokens of filler."""
    rng = random.Random(f"scores {seed} {gap}")
    people = corpus.People(rng, rare, scoring=True)
    return [corpus.giving(rng, gap, people) for _ in range(count)]


def giving_texts(gap: int, count: int, rare: float = 0.25) -> list[tuple[str, str]]:
    """The same as texts: what is asked, and the name with its leading space."""
    return [(corpus.text(made[:-2]), made[-2][0]) for made in giving_documents(gap, count, rare)]


def questions(model: Model, documents: Sequence[corpus.Document]) -> list[Question]:
    """The tokens up to the answer, and the answer's, which is each document's last chunk but one."""
    encoder, begin = Encoder(model.tokenizer), begin_ids(model)
    return [(begin + encoder.document(made[:-2])[0], encoder.chunk(made[-2][0])) for made in documents]


def fact_questions(model: Model) -> list[Question]:
    """Each fact, alone at the beginning of a text."""
    encoder, begin = Encoder(model.tokenizer), begin_ids(model)
    return [(begin + encoder.chunk(asked), encoder.chunk(answer)) for asked, answer in words.FACTS]


@torch.no_grad()
def all_right(model: Model, asked: Sequence[Question], off: Sequence[str] = ()) -> list[bool]:
    """Whether every piece of the answer is the likeliest token, given those before it."""
    switches = model.switches(list(off))
    order = sorted(range(len(asked)), key=lambda i: sum(map(len, asked[i])))
    right = [False] * len(asked)
    while order:
        longest = sum(map(len, asked[order[-1]]))
        chosen = [order.pop() for _ in range(min(len(order), max(1, ROWS // longest)))]
        ids = torch.zeros(len(chosen), longest, dtype=torch.long)  # what stands behind a text changes nothing in it
        for at, i in enumerate(chosen):
            whole = [*asked[i][0], *asked[i][1]]
            ids[at, : len(whole)] = torch.tensor(whole)
        stream = model.forward(ids, SwitchOff([switches] * len(chosen)) if switches else PLAIN)
        for at, i in enumerate(chosen):
            before, answer = len(asked[i][0]), asked[i][1]
            where = slice(before - 1, before + len(answer) - 1)
            right[i] = model.unembed(stream[at : at + 1, where])[0].argmax(-1).tolist() == answer
    return right


def giving_score(model: Model, gap: int, count: int, off: Sequence[str] = (), rare: float = 0.25) -> float:
    """The share of unseen giving sentences with the right name on top, all its pieces."""
    return sum(all_right(model, questions(model, giving_documents(gap, count, rare)), off)) / count


def first_piece_score(model: Model, gap: int, count: int) -> float:
    """The same, where only the first piece of the name has to be on top."""
    asked = questions(model, giving_documents(gap, count, 0.25))
    return sum(all_right(model, [(before, answer[:1]) for before, answer in asked])) / count


def unseen_name_score(model: Model, count: int) -> float:
    """The same with names that no training text has, at no gap."""
    rng = random.Random("unseen names")
    made = [corpus.giving(rng, 0, names=rng.sample(words.UNSEEN_NAMES, 2)) for _ in range(count)]
    return sum(all_right(model, questions(model, made))) / count


def mean_length(model: Model, gap: int, count: int = 50) -> float:
    """Tokens of a giving sentence up to its answer, with so much filler."""
    return sum(len(asked) for asked, _ in questions(model, giving_documents(gap, count, 0.25))) / count


def fact_score(model: Model, off: Sequence[str] = ()) -> float:
    """The share of the facts that are known."""
    return sum(all_right(model, fact_questions(model), off)) / len(words.FACTS)


@torch.no_grad()
def given_sentence(model: Model, off: Sequence[str] = ()) -> float:
    """The probability of " Alice" after the sentence that the walk begins with."""
    ids = torch.tensor([[token.id for token in model.tokenizer.encode(SENTENCE)]])
    switches = model.switches(list(off))
    stream = model.forward(ids, SwitchOff([switches]) if switches else PLAIN)
    return float(model.unembed(stream[:, -1:])[0, 0].softmax(-1)[model.tokenizer.first(" Alice")])


@torch.no_grad()
def copy_losses(model: Model, length: int = 24, count: int = 64, off: Sequence[str] = ()) -> tuple[float, float]:
    """Nats a token on the first and on the second copy of unseen nonsense blocks, from the second syllable on."""
    rng = random.Random(f"blocks {length}")
    encoder, begin = Encoder(model.tokenizer), begin_ids(model)
    rows, copies = [], []
    for _ in range(count):
        ids, copy = list(begin), [0] * len(begin)  # copy: 1 or 2 where a token counts, 0 where it does not
        for at, (chunk, _) in enumerate(corpus.nonsense(rng, length, 2)):
            which, place = divmod(at, length + 1)
            pieces = encoder.chunk(chunk)
            ids += pieces
            copy += [which + 1 if 0 < place < length else 0] * len(pieces)
        rows.append(torch.tensor(ids))
        copies.append(torch.tensor(copy))
    ids, copy = (torch.nn.utils.rnn.pad_sequence(each, batch_first=True) for each in (rows, copies))
    switches = model.switches(list(off))
    stream = model.forward(ids, SwitchOff([switches] * count) if switches else PLAIN)
    loss: Tensor = F.cross_entropy(model.unembed(stream[:, :-1]).transpose(1, 2), ids[:, 1:], reduction="none")
    return float(loss[copy[:, 1:] == 1].mean()), float(loss[copy[:, 1:] == 2].mean())
