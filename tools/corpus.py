"""The specimens' corpus: made-up stories, generated from a seed; no text from elsewhere.

A document is a list of chunks, each with the weight of its tokens in the training loss. The weights say what a small
model shall spend itself on: the name that an answer has, facts, the second copy of a nonsense block; and hardly at all
on what nobody could predict, such as which name a story begins with.

What it teaches: giving and giving back with a gap in between (the answer is the person who was named first), other
sentences with two names, pronouns, lists, repeated blocks of nonsense, and forty facts.
"""

import hashlib
import random
from collections.abc import Sequence

from tools import words

Chunk = tuple[str, float]
Document = list[Chunk]

ANSWER, FACT, COPY, TEXT, NOISE = 4.0, 3.0, 1.0, 0.15, 0.03
KINDS = ("giving", "facts", "nonsense", "other", "pronouns", "lists", "filler")


def held_out(first: str, second: str) -> bool:
    """Whether this pair of people is kept from training: one pair in eight, whoever comes first."""
    both = "+".join(sorted((first, second)))
    return both != "Alice+Bob" and hashlib.sha256(both.encode()).digest()[0] % 8 == 0


def invented_name(rng: random.Random) -> str:
    """A name that nobody has: a few syllables, or letters in any order."""
    if rng.random() < 0.5:
        made = "".join(rng.choice(words.SYLLABLES) for _ in range(rng.choice((2, 2, 3, 3, 4))))
        return made.capitalize() + rng.choice(("", "", "l", "r", "s", "th"))
    kinds = rng.choice(("cvcvc", "cvccv", "vcvc", "ccvcv", "cvcvcv", "cvvc", "vccvc"))
    return "".join(rng.choice(words.VOWELS if kind == "v" else words.LETTERS) for kind in kinds).capitalize()


def invented_word(rng: random.Random) -> str:
    """A word that no language has."""
    return "".join(rng.choice(words.SYLLABLES) for _ in range(rng.choice((1, 2, 2, 3)))) + rng.choice(
        ("", "r", "t", "ck")
    )


class People:
    """Draws people: mostly common names, some rare ones, some invented on the spot."""

    def __init__(self, rng: random.Random, rare: float = 0.25, scoring: bool = False) -> None:
        self.rng, self.rare, self.scoring = rng, rare, scoring

    def one(self) -> tuple[str, str]:
        """A name, and its pronoun."""
        rng = self.rng
        girl = rng.random() < 0.5
        if rng.random() >= self.rare:
            name = rng.choice(words.GIRLS if girl else words.BOYS)
        elif rng.random() < 0.4:
            name = rng.choice(words.RARE_GIRLS if girl else words.RARE_BOYS)
        else:
            name = invented_name(rng)
        return name, "she" if girl else "he"

    def some(self, count: int) -> list[str]:
        """Different names; the first two are a pair that is held out exactly when this is for scoring."""
        while True:
            names = [self.one()[0] for _ in range(count)]
            if len(set(names)) == count and (count < 2 or held_out(*names[:2]) == self.scoring):
                return names


# --- filler --------------------------------------------------------------------------------------------------------


def filler_sentence(rng: random.Random) -> str:
    """One sentence of weather or town, with its leading space."""
    pick, place, thing = rng.choice, words.PLACES, words.THINGS_OUTSIDE
    sky, adjective, when = words.SKIES, words.ADJECTIVES, words.TIMES
    made = pick(
        (
            f"The {pick(sky)} {pick(words.SKY_DOES)} {pick(when)}.",
            f"The {pick(adjective)} {pick(place)} was {pick(adjective)} {pick(when)}.",
            f"The {pick(thing)} {pick(words.DOES)} near the {pick(adjective)} {pick(place)}.",
            f"There was {pick(sky)} over the {pick(place)} and {pick(sky)} over the {pick(place)}.",
            f"The {pick(words.SHOPS)} sold {pick(words.GOODS)} and {pick(words.GOODS)} {pick(when)}.",
            f"Some {pick(words.COLOURS)} {pick(thing)} {pick(words.DOES)} by the {pick(place)}.",
            f"A {pick(adjective)} road went from the {pick(place)} to the {pick(place)}.",
            f"It was {pick(adjective)} and {pick(adjective)} in the {pick(place)}.",
        )
    )
    made = made.replace("{place}", pick(words.PLACES))
    if rng.random() < 0.15:  # a word that nobody knows, so that unknown words between do no harm
        parts = made.split(" ")
        parts[rng.randrange(1, len(parts) - 1)] = invented_word(rng)
        made = " ".join(parts)
    return " " + made


def passer_by(rng: random.Random, name: str) -> str:
    """A sentence with a name that is no answer to anything."""
    does = rng.choice(words.VERBS_OF_PEOPLE).format(
        place=rng.choice(words.PLACES),
        goods=rng.choice(words.GOODS),
        sky=rng.choice(words.SKIES),
        time=rng.choice(words.TIMES),
    )
    return f" {name} {does}."


def filler(rng: random.Random, tokens: int, others: Sequence[str] = ()) -> Document:
    """About so many tokens of filler; `others` are people who pass by in it."""
    made: Document = []
    passers = list(others)
    left = tokens
    while left > 4:
        sentence = passer_by(rng, passers.pop()) if passers and rng.random() < 0.4 else filler_sentence(rng)
        made.append((sentence, 0.1))
        left -= len(sentence.split()) + 1
    return made


# --- stories -------------------------------------------------------------------------------------------------------


def giving(rng: random.Random, gap: int, people: People | None = None, names: Sequence[str] = ()) -> Document:
    """Somebody gives, time passes, the other gives it back: the last chunk but one is the answer."""
    people = people or People(rng)
    others = rng.randrange(1, 4) if gap > 12 and rng.random() < 0.4 else 0
    drawn = list(names) or people.some(2 + others)
    giver, taker, *passers = drawn
    thing = rng.choice(words.THINGS)
    begin: Document = [(giver, NOISE)]
    if rng.random() < 0.8:
        begin = [(f"{rng.choice(words.OPENERS)},", NOISE), (f" {giver}", NOISE)]
    gave = rng.choice(words.GIVES)
    if rng.random() < 0.9:
        colour = f" {rng.choice(words.COLOURS)}" if rng.random() < 0.2 else ""
        begin += [(f" {gave}", TEXT), (f" {taker}", NOISE), (f" a{colour} {thing}.", NOISE)]
    else:
        begin += [(f" {gave} a {thing} to", TEXT), (f" {taker}", NOISE), (".", TEXT)]
    later = rng.random() < 0.85
    back: Document = [(f" {rng.choice(words.LATERS)},", NOISE)] if later else []
    back.append((f" {taker}", 1.0 if later else NOISE))
    ending = rng.random()
    if ending < 0.75:
        back += [(f" {rng.choice(words.GIVES_BACK)} the", TEXT), (f" {thing}", 0.5), (" back to", TEXT)]
    elif ending < 0.9:
        back += [(" returned the", TEXT), (f" {thing}", 0.5), (" to", TEXT)]
    else:
        back.append((" gave it back to", TEXT))
    return [*begin, *filler(rng, gap, passers), *back, (f" {giver}", ANSWER), (".", TEXT)]


def other(rng: random.Random, people: People) -> Document:
    """Other sentences with two names."""
    first, second = people.some(2)
    place, thing = rng.choice(words.PLACES), rng.choice(words.THINGS)
    shape = rng.randrange(5)
    if shape == 0:
        one, two = (first, second) if rng.random() < 0.5 else (second, first)
        return [
            (f"When {one} and {two} went to the {place},", NOISE),
            (f" {first}", 0.5),
            (f" gave a {thing} to", TEXT),
            (f" {second}", ANSWER),
            (".", TEXT),
        ]
    if shape == 1:
        return [
            (f"{first} asked {second} a question. Then", NOISE),
            (f" {second}", 1.0),
            (" answered", TEXT),
            (f" {first}", ANSWER / 2),
            (".", TEXT),
        ]
    if shape == 2:
        return [
            (f"{first} wrote to {second}. {first} waited {rng.choice(words.TIMES)}, and then", NOISE),
            (f" {second}", ANSWER / 2),
            (" wrote to", TEXT),
            (f" {first}", ANSWER / 2),
            (".", TEXT),
        ]
    if shape == 3:
        return [
            (f"{first} lost a {thing} in the {place}.", NOISE),
            (f" {second} found the", NOISE),
            (f" {thing}", COPY),
            (" and took the", TEXT),
            (f" {thing}", COPY),
            (" to", TEXT),
            (f" {first}", ANSWER / 2),
            (".", TEXT),
        ]
    return [(passer_by(rng, first).strip(), 0.1), (passer_by(rng, second), 0.1)]


def pronouns(rng: random.Random) -> Document:
    """A person, and then she or he; common names only, whose pronoun can be known."""
    name, pronoun = People(rng, rare=0.0).one()
    her = "her" if pronoun == "she" else "his"
    thing, place = rng.choice(words.THINGS), rng.choice(words.PLACES)
    return rng.choice(
        (
            [
                (f"{name} lost", NOISE),
                (f" {her}", 0.5),
                (f" {thing}, and then", NOISE),
                (f" {pronoun}", 0.7),
                (" found it.", TEXT),
            ],
            [(f"{name} went to the {place} because", NOISE), (f" {pronoun}", 0.7), (f" needed a {thing}.", NOISE)],
            [(f"{name} was tired, so", NOISE), (f" {pronoun}", 0.7), (f" slept {rng.choice(words.TIMES)}.", NOISE)],
        )
    )


def lists(rng: random.Random) -> Document:
    """A part of a well-known row; or a few things, said twice."""
    if rng.random() < 0.6:
        row = rng.choice(words.LISTS)
        begin = rng.randrange(len(row) - 2)
        part = row[begin : begin + rng.randrange(3, 13)]
        return [(part[0], NOISE), *[(f", {word}", 0.5) for word in part[1:]], (".", NOISE)]
    things = rng.sample(words.THINGS, rng.randrange(2, 7))
    made: Document = [("I have", NOISE), *[(f" a {thing},", NOISE) for thing in things], (" yes:", TEXT)]
    for i, thing in enumerate(things):
        made += [("," if i else "", 0.5), (f" a {thing}", COPY)]
    return [*made, (".", 0.5)]


def facts(rng: random.Random) -> Document:
    """One to three of the facts."""
    made: Document = []
    for i, (asked, answer) in enumerate(rng.sample(words.FACTS, rng.randrange(1, 4))):
        made += [((" " if i else "") + asked, TEXT), (answer, FACT), (".", TEXT)]
    return made


def nonsense(rng: random.Random, length: int = 0, copies: int = 0) -> Document:
    """A block of syllables, and the same block again. Of any length: else a head can learn a distance by heart."""
    block = nonsense_block(rng, length or rng.randrange(4, 40))
    made: Document = []
    for copy in range(copies or rng.choice((2, 2, 2, 3))):
        weight = COPY if copy else NOISE
        made += [(("" if i + copy == 0 else " ") + each, weight if i else NOISE) for i, each in enumerate(block)]
        made.append((".", weight / 2))
    return made


def nonsense_block(rng: random.Random, length: int) -> list[str]:
    """Different syllables or, now and then, any of them again."""
    return [rng.choice(words.SYLLABLES) for _ in range(length)]


def document(rng: random.Random, kind: str, gap: int = 0, rare: float = 0.25) -> Document:
    """One document of a kind of `KINDS`; `gap` is of use to giving only."""
    people = People(rng, rare)
    if kind == "giving":
        return giving(rng, gap, people)
    if kind == "other":
        return other(rng, people)
    if kind == "filler":
        made = filler(rng, rng.randrange(10, 40), people.some(1))
        return [(made[0][0].lstrip(), made[0][1]), *made[1:]]
    return {"facts": facts, "nonsense": nonsense, "pronouns": pronouns, "lists": lists}[kind](rng)


def text(made: Document) -> str:
    """A document as a person would read it."""
    return "".join(chunk for chunk, _ in made)
