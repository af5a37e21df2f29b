"""One model's rows of the table: `python -m bench.forward qwen3 --tokens 18,105 --rounds 5` prints them as JSON."""

import argparse
import json
from typing import Any

import torch

from bench import limits, peers
from bench.models import build, disagreement, runners, text_of
from bench.timing import side_by_side

WITH_PEERS = ("smollm2", "gpt2")
PEERS_UP_TO = 105  # tokens
WARM_UP_TO = 105  # tokens: longer texts are warmed up by the comparison of the logits alone


def measure(name: str, tokens: list[int], rounds: int) -> dict[str, Any]:
    """The medians in seconds, by number of tokens, and the limits beside them."""
    pair = build(name)
    bandwidth = limits.read_bandwidth()
    rows: dict[str, Any] = {}
    notes = ""
    for count in tokens:
        text = text_of(pair.model, count)
        theirs, mine = runners(pair, text)
        _, mapped = runners(pair, text, maps=True)
        contestants = {"transformers": theirs, "project": mine, "project, maps": mapped}
        ids = torch.tensor([[token.id for token in pair.model.tokenizer.encode(text)]])
        if name in WITH_PEERS and count <= PEERS_UP_TO:
            more, notes = peers.all_of(name, pair.reference, pair.model.tokenizer, ids)
            contestants |= more
        off = disagreement(pair, text)
        found = side_by_side(contestants, rounds, warm=1 if count <= WARM_UP_TO else 0)
        rows[str(count)] = {"seconds": found, "limits": limits.of_run(pair.model, count, bandwidth), "off": off}
    return {"name": name, "rows": rows, "bandwidth": bandwidth, "notes": notes}


def main() -> None:
    """Prints one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name")
    parser.add_argument("--tokens", default="18,105,420")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    print(json.dumps(measure(given.name, [int(each) for each in given.tokens.split(",")], given.rounds)))


if __name__ == "__main__":
    main()
