"""What takes part: transformers and the peers that run on its model, and this project. Each side is a process's own."""

import copy
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import transformers
from torch import Tensor

from bench import limits
from bench.alone import alone
from bench.models import SIZES, reference, text_of, tokenizer_of
from bench.timing import seconds
from core import memory
from core.ablation import switched
from core.model import Model
from core.run import Run
from core.tokens import Tokenizer
from core.weights import load_folder
from tests.full_sizes import CONFIGS
from tests.reference import save

Contestant = Callable[[], Any]  # one timed call; it returns all that it found, so that letting go is not timed


class Side:
    """The contestants of one process. Each is made for a number of tokens when it is first asked for."""

    def __init__(self, making: Mapping[str, Callable[[str], Contestant]], tokenizer: Tokenizer) -> None:
        """`making[name]` makes a contestant for a text."""
        self.making = making
        self.tokenizer = tokenizer
        self.made: dict[tuple[str, int], Contestant] = {}

    @torch.no_grad()
    def contestant(self, name: str, tokens: int) -> Contestant:
        if (name, tokens) not in self.made:
            self.made[name, tokens] = self.making[name](text_of(self.tokenizer, tokens))
        return self.made[name, tokens]

    @torch.no_grad()
    def seconds(self, name: str, tokens: int) -> float:
        took = seconds(self.contestant(name, tokens))
        self.rest()
        return took

    def rest(self) -> None:
        """What the contestant's own program does between two of its runs."""

    @torch.no_grad()
    def result(self, name: str, tokens: int) -> np.ndarray | None:
        """The logits after the last token that it computed, or None where it gives none: a pipe carries them."""
        logits = self.logits(self.contestant(name, tokens)())
        return None if logits is None else logits.numpy()

    def logits(self, found: Any) -> Tensor | None:
        """The logits after the last token, of what a contestant returned."""
        raise NotImplementedError


class Theirs(Side):
    """transformers in eager float32, and the peers, which run the very same model."""

    def __init__(self, name: str, model: Any, tokenizer: Tokenizer) -> None:
        super().__init__(
            {
                "transformers": self.plain,
                "recorded": self.recorded,
                "transformer_lens": self.transformer_lens,
                "nnsight": self.nnsight,
                "separate": self.separate,
            },
            tokenizer,
        )
        self.name, self.model = name, model

    def save(self, folder: Path) -> None:
        """Writes the model as files: the project loads its weights from there, as it does everywhere."""
        save(self.model, CONFIGS[SIZES[self.name]], folder, self.tokenizer)

    def ids(self, text: str) -> Tensor:
        return torch.tensor([[token.id for token in self.tokenizer.encode(text)]])

    def logits(self, found: Any) -> Tensor | None:
        return found if found is None or isinstance(found, Tensor) else found.logits[0, -1]

    def plain(self, text: str) -> Contestant:
        """The forward pass: what the table's ratios are to."""
        ids = self.ids(text)
        return lambda: self.model(ids, use_cache=False)

    def recorded(self, text: str) -> Contestant:
        """With every hidden state and every attention map."""
        ids = self.ids(text)
        return lambda: self.model(ids, use_cache=False, output_hidden_states=True, output_attentions=True)

    def transformer_lens(self, text: str) -> Contestant:
        """TransformerLens's run_with_cache, as it comes: everything is kept. Its tokenizer has to lie in a folder."""
        from transformer_lens.model_bridge import TransformerBridge

        ids, fast = self.ids(text), self.tokenizer.fast
        some = fast.id_to_token(0)
        with tempfile.TemporaryDirectory() as folder:
            words = transformers.PreTrainedTokenizerFast(
                tokenizer_object=fast, bos_token=some, eos_token=some, pad_token=some
            )
            words.save_pretrained(folder)
            words = transformers.AutoTokenizer.from_pretrained(folder)
            bridge = TransformerBridge.boot_transformers(self.name, hf_model=copy.deepcopy(self.model), tokenizer=words)

        def run() -> SimpleNamespace:
            logits, cache = bridge.run_with_cache(ids)
            return SimpleNamespace(logits=logits, cache=cache)

        return run

    def nnsight(self, text: str) -> Contestant:
        """An nnsight trace that keeps the output of every layer, and the logits."""
        from nnsight import NNsight

        ids, traced = self.ids(text), NNsight(copy.deepcopy(self.model))
        blocks = traced.transformer.h if hasattr(self.model, "transformer") else traced.model.layers

        def run() -> SimpleNamespace:
            with traced.trace(input_ids=ids, use_cache=False):
                streams = list().save()  # noqa: C408 (nnsight saves a call's result)
                for block in blocks:
                    streams.append(block.output)
                logits = traced.lm_head.output.save()
            return SimpleNamespace(streams=streams, logits=logits)

        return run

    def separate(self, text: str) -> Contestant:
        """A run for each layer, with a hook that empties its attention: logits (layer, vocabulary)."""
        ids = self.ids(text)

        def empty(module: Any, inputs: Any, output: Any) -> Any:
            return (torch.zeros_like(output[0]), *output[1:])

        def run() -> Tensor:
            found = []
            for block in self.model.model.layers:
                hook = block.self_attn.register_forward_hook(empty)
                found.append(self.model(ids, use_cache=False).logits[0, -1])
                hook.remove()
            return torch.stack(found)

        return run


class Ours(Side):
    """This project: a run with every layer's residual vector and the last position's logits, as a page needs them."""

    def __init__(self, model: Model) -> None:
        super().__init__({"project": self.plain, "maps": self.maps, "sweep": self.sweep}, model.tokenizer)
        self.model = model

    def logits(self, found: Any) -> Tensor | None:
        return found if isinstance(found, Tensor) else found.logits_at()

    def rest(self) -> None:
        memory.settle()

    def recording(self, text: str, *sites: str) -> Run:
        run = self.model.run(text, sites)
        run.logits_at()  # which the run keeps
        return run

    def plain(self, text: str) -> Contestant:
        return lambda: self.recording(text, "residual.after")

    def maps(self, text: str) -> Contestant:
        """With every attention map recorded as well."""
        return lambda: self.recording(text, "residual.after", "attention.pattern")

    def sweep(self, text: str) -> Contestant:
        """Each layer's mixer off in turn, from the plain run that a page has by then: logits (layer, vocabulary)."""
        variants = [self.model.switches([f"mixer:{layer}"]) for layer in range(self.model.layers)]
        run = self.model.run(text, ["residual.before"])
        return lambda: switched(run, variants)

    def limits(self, tokens: int) -> dict[str, float]:
        matrices = [tensor for tensor in self.model.weights.held if tensor.dim() == 2]
        return limits.of_run(self.model, tokens) | {"alone": alone(self.contestant("project", tokens), matrices)}

    def sweep_limits(self, tokens: int) -> dict[str, float]:
        return limits.of_sweep(self.model, tokens)


def theirs(name: str, threads: int, kept: bool = False) -> Theirs:
    """For a process of its own. `kept`: with the project's rule for freed memory, which a program has to ask for."""
    torch.set_num_threads(threads)
    if kept:
        memory.keep_freed()
    return Theirs(name, reference(name), tokenizer_of(name))


def ours(folder: Path, threads: int) -> Ours:
    """For a process of its own, set up as the app sets up its own."""
    torch.set_num_threads(threads)
    memory.keep_freed()
    return Ours(load_folder(folder))
