"""What the peers are asked for, on the very model that transformers runs."""

import copy
import tempfile
from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import Tensor

from core.tokens import Tokenizer


def recorded(reference: Any, ids: Tensor) -> Callable[[], Any]:
    """transformers with every hidden state and every attention map."""
    return lambda: reference(ids, use_cache=False, output_hidden_states=True, output_attentions=True)


def transformer_lens(name: str, reference: Any, tokenizer: Tokenizer, ids: Tensor) -> Callable[[], Any]:
    """TransformerLens's run_with_cache, as it comes: everything is kept. It wants a tokenizer that lies in a folder."""
    from transformer_lens.model_bridge import TransformerBridge

    some = tokenizer.fast.id_to_token(0)
    with tempfile.TemporaryDirectory() as folder:
        words = transformers.PreTrainedTokenizerFast(
            tokenizer_object=tokenizer.fast, bos_token=some, eos_token=some, pad_token=some
        )
        words.save_pretrained(folder)
        words = transformers.AutoTokenizer.from_pretrained(folder)
        bridge = TransformerBridge.boot_transformers(name, hf_model=copy.deepcopy(reference), tokenizer=words)
    return lambda: bridge.run_with_cache(ids)


def nnsight(reference: Any, ids: Tensor) -> Callable[[], Any]:
    """An nnsight trace that keeps the output of every layer, and the logits."""
    from nnsight import NNsight

    traced = NNsight(copy.deepcopy(reference))
    blocks = traced.transformer.h if hasattr(reference, "transformer") else traced.model.layers

    def run() -> Any:
        with traced.trace(input_ids=ids, use_cache=False):
            streams = list().save()  # noqa: C408 (nnsight saves a call's result)
            for block in blocks:
                streams.append(block.output)
            logits = traced.lm_head.output.save()
        return streams, logits

    return run


@torch.no_grad()
def all_of(name: str, reference: Any, tokenizer: Tokenizer, ids: Tensor) -> tuple[dict[str, Callable[[], Any]], str]:
    """Every peer that runs here, and a note on those that do not."""
    found: dict[str, Callable[[], Any]] = {}
    notes = []
    made: dict[str, Callable[[], Callable[[], Any]]] = {
        "recorded": lambda: recorded(reference, ids),
        "transformer_lens": lambda: transformer_lens(name, reference, tokenizer, ids),
        "nnsight": lambda: nnsight(reference, ids),
    }
    for peer, make in made.items():
        try:
            run = make()
            run()
        except Exception as error:  # a peer that cannot run this model is left out, and the table says so
            notes.append(f"{peer}: {type(error).__name__}: {str(error).splitlines()[0][:120]}")
        else:
            found[peer] = run
    return found, "; ".join(notes)
