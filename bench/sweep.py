"""One mixer off in turn for all layers of SmolLM2, against as many separate transformers runs: prints JSON."""

import argparse
import json
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bench.models import Pair, build, text_of
from bench.timing import side_by_side
from core.ablation import switched


def separately(pair: Pair, ids: Tensor) -> Callable[[], Tensor]:
    """A transformers run for each layer, with a hook that empties its attention: (layer, vocabulary)."""

    def empty(module: Any, inputs: Any, output: Any) -> Any:
        return (torch.zeros_like(output[0]), *output[1:])

    def run() -> Tensor:
        found = []
        for block in pair.reference.model.layers:
            hook = block.self_attn.register_forward_hook(empty)
            found.append(pair.reference(ids, use_cache=False).logits[0, -1])
            hook.remove()
        return torch.stack(found)

    return run


def together(pair: Pair, text: str) -> Callable[[], Tensor]:
    """The plain run and the sweep that starts from it: (layer, vocabulary)."""
    variants = [pair.model.switches([f"mixer:{layer}"]) for layer in range(pair.model.layers)]
    return lambda: switched(pair.model.run(text, record=["residual.before"]), variants)


@torch.no_grad()
def measure(tokens: list[int], rounds: int) -> dict[str, Any]:
    """Seconds of both, and the largest difference of a probability, by number of tokens."""
    pair = build("smollm2")
    rows = {}
    for count in tokens:
        text = text_of(pair.model, count)
        ids = torch.tensor([[token.id for token in pair.model.tokenizer.encode(text)]])
        theirs, mine = separately(pair, ids), together(pair, text)
        off = float((theirs().softmax(-1) - mine().softmax(-1)).abs().max())
        rows[str(count)] = {"seconds": side_by_side({"separate": theirs, "sweep": mine}, rounds, warm=0), "off": off}
    return rows


def main() -> None:
    """Prints one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", default="18,105")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    print(json.dumps(measure([int(each) for each in given.tokens.split(",")], given.rounds)))


if __name__ == "__main__":
    main()
