"""Parity with transformers on small random models of every architecture."""

import copy
from typing import Any

import pytest
import torch

from core.model import Model
from tests.reference import compare, first_difference, ours, random_ids
from tests.tiny import BASE, VARIANTS, VOCABULARY, fresh, made, tiny

LENGTHS = (1, 63, 64, 65, 129)


@pytest.mark.parametrize("tokens", LENGTHS)
@pytest.mark.parametrize("name", VARIANTS)
def test_logits_are_the_references_and_as_near_to_float64(name: str, tokens: int) -> None:
    each = tiny(name)
    compare(each.reference, each.model, each.exact, random_ids(tokens, VOCABULARY))


@pytest.mark.parametrize("name", VARIANTS)
def test_the_float64_run_is_the_references_float64_run(name: str) -> None:
    each = tiny(name)
    ids = random_ids(129, VOCABULARY)
    double = copy.deepcopy(each.reference).double()
    with torch.no_grad():
        theirs = double(ids, use_cache=False).logits
        mine = each.exact.unembed(each.exact.forward(ids))
    assert mine.dtype == torch.float64
    assert (mine - theirs).abs().max() <= 1e-4 * theirs.abs().max()


@pytest.mark.parametrize("name", VARIANTS)
def test_the_gradient_that_training_follows_is_the_references(name: str) -> None:
    """Of the embedding, to which it comes through all layers; past one chunk see the mixers' own."""
    each = tiny(name)
    ids = random_ids(65, VOCABULARY)
    double = copy.deepcopy(each.reference).double().requires_grad_(True)
    double(ids, use_cache=False).logits.sin().sum().backward()
    theirs = double.get_input_embeddings().weight.grad
    mine = ours(each.reference, each.settings, torch.float64, packed=False)
    for parameter in mine.weights.parameters:
        parameter.requires_grad_(True)
    mine.unembed(mine.forward(ids)).sin().sum().backward()
    table = next(tensor for key, tensor in mine.weights.outside.items() if key in ("embed_tokens.weight", "wte.weight"))
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in mine.weights.parameters)
    assert table.grad is not None
    assert (table.grad - theirs).abs().max() <= 1e-4 * theirs.abs().max()


@pytest.mark.parametrize("off", [-1, 0, 1, 16], ids=["window - 1", "window", "window + 1", "2 * window"])
def test_a_local_window_sees_as_many_keys_as_the_reference(off: int) -> None:
    each = tiny("gemma3")
    compare(each.reference, each.model, each.exact, random_ids(each.settings["sliding_window"] + off, VOCABULARY))


def test_a_windows_pattern_is_the_references_eager_pattern() -> None:
    each = tiny("gemma3")
    window = each.settings["sliding_window"]
    text = "abcdefgh" * (window // 4)  # two windows of one-byte tokens
    run = each.model.run(text, record=["attention.pattern"])
    with torch.no_grad():
        theirs = each.reference(torch.tensor([run.ids]), output_attentions=True, use_cache=False).attentions
    for layer, pattern in run.values["attention.pattern"].items():
        torch.testing.assert_close(pattern, theirs[layer][0], rtol=0, atol=1e-6)
    seen = (run.values["attention.pattern"][0] > 0).sum(-1)
    assert seen.tolist() == [[min(t + 1, window) for t in range(2 * window)]] * 4


def shifted(name: str, part: str, by: float, **changes: Any) -> Any:
    """A variant with a number added to every tensor whose name ends in `part`."""
    each = fresh(name, **changes)
    for parameter_name, parameter in each.reference.named_parameters():
        if parameter_name.endswith(part):
            parameter.data += by
    return made(each.settings, each.reference)


@pytest.mark.parametrize("limit", [[0.0, float("inf")], [0.01, 0.1]], ids=["unlimited", "limited"])
@pytest.mark.parametrize("tokens", [1, 65])
def test_granite_with_a_step_of_80_has_no_nan(tokens: int, limit: list[float]) -> None:
    each = shifted("granite", "dt_bias", 80.0, time_step_limit=limit)
    dt = each.model.run("a" * tokens, record=["mamba2.dt"]).values["mamba2.dt"]
    assert dt[0].max() > 70 if limit[1] > 1 else dt[0].max() == torch.tensor(0.1)
    compare(each.reference, each.model, each.exact, random_ids(tokens, VOCABULARY))


def test_deltanet_with_a_step_of_80_has_no_nan() -> None:
    # All is forgotten at once, so that y is one product, and may be tiny: eps bounds how far its norm blows that up.
    each = shifted("qwen3.5", "dt_bias", 80.0, rms_norm_eps=1e-4)
    alpha = each.model.run("some text", record=["deltanet.alpha"]).values["deltanet.alpha"]
    assert alpha[0].max() < 1e-4
    compare(each.reference, each.model, each.exact, random_ids(65, VOCABULARY))


def test_granite_clamps_dt_to_the_configs_limits_and_to_nothing_else() -> None:
    text = "Numbers in a row: 1 2 3 4 5"
    free = tiny("granite").model.run(text, record=["mamba2.dt"]).values["mamba2.dt"]
    held = tiny("granite, dt limited").model.run(text, record=["mamba2.dt:0"]).values["mamba2.dt"]
    assert free[0].min() < 0.01
    assert free[0].max() > 0.1
    assert torch.equal(held[0], free[0].clamp(0.01, 0.1))


class Stored:
    """A checkpoint as a file has it."""

    def __init__(self, tensors: dict[str, torch.Tensor]) -> None:
        self.state_dict = lambda: tensors


@pytest.mark.parametrize("name", ["granite", "granite, two groups", "qwen3.5"])
def test_decays_stored_in_bf16_are_used_in_float32(name: str) -> None:
    each = fresh(name)
    tensors = each.reference.state_dict()
    for tensor_name, tensor in tensors.items():
        if tensor_name.endswith(("A_log", "dt_bias")):
            tensor.copy_(tensor.bfloat16())  # the reference, in float32, has the rounded values
    stored = Stored({k: v.bfloat16() if k.endswith(("A_log", "dt_bias")) else v for k, v in tensors.items()})
    model, exact = ours(stored, each.settings), ours(stored, each.settings, torch.float64)
    compare(each.reference, model, exact, random_ids(65, VOCABULARY))


@pytest.mark.parametrize("name", BASE)
def test_weights_in_bf16_run_as_the_reference_runs_them_in_float32(name: str) -> None:
    each = fresh(name)
    stored = Stored({key: tensor.bfloat16() for key, tensor in each.reference.state_dict().items()})
    for parameter in each.reference.parameters():
        parameter.data = parameter.data.bfloat16().float()
    model = ours(stored, each.settings)
    assert {tensor.dtype for tensor in model.weights.parameters} == {torch.float32}
    compare(each.reference, model, ours(stored, each.settings, torch.float64), random_ids(65, VOCABULARY))


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("granite, attention only", ("attention",) * 4),
        ("granite, mamba only", ("mamba2",) * 4),
        ("granite, attention first", ("attention", "mamba2", "mamba2", "attention")),
        ("gemma3", ("local attention", "local attention", "attention", "local attention")),
        ("qwen3.5", ("gated deltanet", "gated deltanet", "gated deltanet", "attention")),
    ],
)
def test_the_mixers_are_named_from_the_config(name: str, kinds: tuple[str, ...]) -> None:
    model = tiny(name).model
    assert model.mixers == kinds
    names = {site.name.split(".")[0] for site in model.sites}
    assert ("mamba2" in names) == ("mamba2" in kinds)
    assert ("attention" in names) == any("attention" in kind for kind in kinds)


def test_a_batchs_rows_do_not_touch_each_other() -> None:
    for name in BASE:
        model = tiny(name).model
        ids = random_ids(20, VOCABULARY, rows=3)
        together = model.unembed(model.forward(ids))
        alone = torch.cat([model.unembed(model.forward(row[None])) for row in ids])
        torch.testing.assert_close(together, alone, rtol=0, atol=1e-5 * float(alone.abs().max()))


@pytest.mark.parametrize("name", BASE)
def test_a_run_resumed_from_a_saved_stream_ends_like_the_whole_run(name: str) -> None:
    model = tiny(name).model
    run = model.run("the middle of a run", record=["residual.before:2"])
    assert torch.equal(model.resume(2, run.values["residual.before"][2][None])[0], run.stream)


@pytest.mark.parametrize("name", BASE)
def test_later_tokens_change_nothing_before_them(name: str) -> None:
    model = tiny(name).model
    ids = random_ids(70, VOCABULARY, rows=1)
    whole = model.unembed(model.forward(ids))
    part = model.unembed(model.forward(ids[:, :50]))
    torch.testing.assert_close(whole[:, :50], part, rtol=0, atol=1e-5 * float(whole.abs().max()))


# --- the helper that names the first difference -----------------------------------------------------------------------

PARTS = {
    "gpt2": ("h.1.attn.c_proj.weight", "h.1.mlp.c_proj.weight", "h.1.ln_2.weight"),
    "qwen3": (
        "layers.1.self_attn.o_proj.weight",
        "layers.1.mlp.down_proj.weight",
        "layers.1.post_attention_layernorm.",
    ),
    "granite": ("layers.1.self_attn.o_proj.", "layers.1.shared_mlp.output", "layers.1.post_attention_layernorm."),
    "gemma3": ("1.post_attention_layernorm.", "1.post_feedforward_layernorm.", "1.pre_feedforward_layernorm."),
    "qwen3.5": ("layers.1.linear_attn.out_proj.", "layers.1.mlp.down", "layers.1.post_attention_layernorm."),
}


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize(
    ("which", "site"), [(0, "residual.between"), (1, "residual.after"), (2, "ffn.input")], ids=["mixer", "ffn", "norm"]
)
def test_the_first_site_that_differs_is_named(name: str, which: int, site: str) -> None:
    each = fresh(name)
    for parameter_name, parameter in each.reference.named_parameters():
        if PARTS[name][which] in parameter_name:
            parameter.data *= 1.01
    said = first_difference(each.reference, each.model, random_ids(5, VOCABULARY))
    assert said.startswith(f"layer 1 ({each.model.mixers[1]}), {site}: ")


def test_a_wrong_program_fails_the_comparison() -> None:
    each = fresh("qwen3")
    wrong: Model = ours(each.reference, {**each.settings, "rope_theta": 10_000.0})
    with pytest.raises(AssertionError, match=r"layer 0 \(attention\), residual\.between"):
        compare(each.reference, wrong, each.exact, random_ids(65, VOCABULARY))


def test_a_slightly_less_exact_program_fails_the_float64_bound() -> None:
    each = fresh("qwen3")
    rough = ours(each.reference, each.settings, packed=False)
    for tensor in rough.weights.parameters:
        tensor.mul_(1 + 3e-7)
    with pytest.raises(AssertionError, match="from float64, theirs"):
        compare(each.reference, rough, each.exact, random_ids(65, VOCABULARY))
