"""Each mixer's token-by-token map, applied to what the layer mixes, gives the layer's output."""

import pytest
import torch
from torch import Tensor

from core.run import Run
from tests.tiny import fresh, tiny

TEXT = "A map says which token reads from which, and how much: here are more than sixty-four of them."
ATTENTION = {
    "gpt2": 1,
    "llama": 1,
    "llama, one kv head": 1,
    "llama, each head its keys": 0,
    "qwen3": 2,
    "granite": 1,
    "granite, attention first": 0,
    "gemma3": 1,
    "gemma3, two kv heads": 2,
    "gemma3, no qk norm": 0,
    "qwen3.5": 3,
    "qwen3.5, one kv head": 3,
}


def near(value: Tensor, right: Tensor) -> None:
    assert value.shape == right.shape
    assert (value - right).abs().max() <= 1e-5 * right.abs().max()


def values(name: str, layer: int, *sites: str) -> tuple[Run, list[Tensor]]:
    run = tiny(name).model.run(TEXT, record=[f"{site}:{layer}" for site in sites])
    assert len(run.ids) > 64
    return run, [run.values[site][layer] for site in sites]


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_the_pattern_on_the_values_is_what_the_heads_hand_on(name: str) -> None:
    gated = name.startswith("qwen3.5")
    sites = ["attention.pattern", "attention.value", "mixer.heads"] + ["attention.gate"] * gated
    _, (pattern, value, heads, *gate) = values(name, ATTENTION[name], *sites)
    value = value.repeat_interleave(pattern.shape[0] // value.shape[0], dim=0)
    z = (pattern @ value).transpose(0, 1)
    near(z * gate[0] if gated else z, heads)


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_a_pattern_is_between_0_and_1_and_each_row_sums_to_1(name: str) -> None:
    _, (pattern,) = values(name, ATTENTION[name], "attention.pattern")
    assert pattern.min() >= 0
    assert pattern.max() <= 1
    torch.testing.assert_close(pattern.sum(-1), torch.ones(pattern.shape[:2]))
    assert not pattern.triu(1).any()


@pytest.mark.parametrize("name", ["llama", "gemma3", "qwen3.5"])
def test_attention_the_pattern_is_the_softmax_of_queries_and_keys(name: str) -> None:
    layer = ATTENTION[name]
    model = tiny(name).model
    _, (pattern, q, k) = values(name, layer, "attention.pattern", "attention.query", "attention.key")
    scale = getattr(model, "scale", q.shape[-1] ** -0.5)
    scores = q @ k.repeat_interleave(len(q) // len(k), dim=0).transpose(-1, -2) * scale
    seen = pattern > 0
    near(scores.masked_fill(~seen, float("-inf")).softmax(-1), pattern)


@pytest.mark.parametrize(("heads", "kv_heads"), [(16, 8), (9, 3), (4, 1)])
def test_grouped_queries_each_query_head_has_its_own_map_and_is_switched_off_alone(heads: int, kv_heads: int) -> None:
    model = fresh("qwen3", num_attention_heads=heads, num_key_value_heads=kv_heads).model
    sites = ["attention.pattern:1", "attention.value:1", "mixer.heads:1"]
    plain = model.run(TEXT, record=sites)
    pattern, value, z = (plain.values[site.partition(":")[0]][1] for site in sites)
    assert len(pattern) == heads
    assert len(value) == kv_heads
    for head in range(heads):
        near(pattern[head] @ value[head // (heads // kv_heads)], z[:, head])
        for other in range(head):
            assert (pattern[head] - pattern[other]).abs().max() > 0.01
    for head in (0, 1, heads - 1):
        run = model.run(TEXT, record=sites, off=[f"head:1.{head}"])
        kept = [each for each in range(heads) if each != head]
        assert not run.values["mixer.heads"][1][:, head].any()
        assert torch.equal(run.values["mixer.heads"][1][:, kept], z[:, kept])
        assert torch.equal(run.values["attention.pattern"][1], pattern)
        assert not torch.equal(run.logits, plain.logits)


def test_a_local_layer_reads_nothing_from_before_its_window() -> None:
    model = tiny("gemma3").model
    run = model.run(TEXT, record=["attention.pattern"])
    tokens, window = len(run.ids), 16
    outside = torch.ones(tokens, tokens, dtype=torch.bool).tril(-window)
    for layer, kind in enumerate(model.mixers):
        assert run.values["attention.pattern"][layer][:, outside].any() == (kind == "attention")
    assert (run.values["attention.pattern"][0].diagonal(1 - window, -2, -1) > 0).all()


@pytest.mark.parametrize("name", ["granite", "granite, two groups", "granite, dt limited", "granite, mamba only"])
def test_mamba2_the_map_on_x_and_d_x_is_y(name: str) -> None:
    run, (m, x, y) = values(name, 2, "mamba2.map", "mamba2.x", "mamba2.y")
    assert isinstance(run, Run)
    D = run.model.weights.layers[2]["mamba.D"]
    near(m @ x + D[:, None, None] * x, y)
    assert m.min() < 0 < m.max()
    assert not m.triu(1).any()


def test_mamba2_the_map_is_made_of_the_recorded_parts() -> None:
    names = ("mamba2.map", "mamba2.B", "mamba2.C", "mamba2.dt", "mamba2.decay")
    _, (m, B, C, dt, decay) = values("granite, two groups", 0, *names)
    for head, t, s in ((0, 5, 2), (3, 70, 64), (5, 9, 9)):
        right = C[head // 3, t] @ B[head // 3, s] * dt[head, s] * decay[head, s + 1 : t + 1].prod()
        torch.testing.assert_close(m[head, t, s], right, rtol=1e-4, atol=1e-6)
    assert ((decay > 0) & (decay <= 1)).all()


@pytest.mark.parametrize("name", ["granite", "granite, two groups"])
def test_mamba2_gates_first_and_then_norms_within_each_group(name: str) -> None:
    run, (y, gate, heads) = values(name, 0, "mamba2.y", "mamba2.gate", "mixer.heads")
    model = run.model
    gated = (y.transpose(0, 1).flatten(1) * gate).unflatten(-1, (2 if "two" in name else 1, -1))
    normed = gated / (gated.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()
    near(normed.flatten(1) * model.weights.layers[0]["mamba.norm.weight"], heads.flatten(1))


@pytest.mark.parametrize("name", ["qwen3.5", "qwen3.5, two value heads a key", "qwen3.5, deltanet only"])
def test_deltanet_the_map_on_the_values_is_y(name: str) -> None:
    _, (m, v, y) = values(name, 1, "deltanet.map", "deltanet.value", "deltanet.y")
    near(m @ v, y)
    assert not m.triu(1).any()


@pytest.mark.parametrize("name", ["qwen3.5", "qwen3.5, two value heads a key"])
def test_deltanet_a_map_without_the_erase_term_is_not_what_the_layer_does(name: str) -> None:
    sites = ("query", "key", "value", "alpha", "beta", "y", "map")
    _, (q, k, v, alpha, beta, y, m) = values(name, 1, *(f"deltanet.{site}" for site in sites))
    total = alpha.double().log().cumsum(-1)
    decay = (total[:, :, None] - total[:, None]).exp().tril().float()
    without = (q @ k.transpose(-1, -2)) * decay * beta.unsqueeze(-2)
    assert (without @ v - y).abs().max() > 0.02 * y.abs().max()
    torch.testing.assert_close(without.diagonal(0, -2, -1), m.diagonal(0, -2, -1))  # nothing to erase on its own place


def test_deltanet_keys_have_length_1_and_queries_1_over_root_d() -> None:
    _, (q, k) = values("qwen3.5", 0, "deltanet.query", "deltanet.key")
    torch.testing.assert_close(k.norm(dim=-1), torch.ones(k.shape[:2]), rtol=1e-3, atol=0)
    torch.testing.assert_close(q.norm(dim=-1), torch.full(q.shape[:2], 32**-0.5), rtol=1e-3, atol=0)


def test_deltanet_norms_first_and_then_gates() -> None:
    run, (y, gate, heads) = values("qwen3.5", 0, "deltanet.y", "deltanet.gate", "mixer.heads")
    y = y.transpose(0, 1)
    normed = y / (y.pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()
    near(normed * run.model.weights.layers[0]["linear_attn.norm.weight"] * gate, heads)
    other = y * gate / ((y * gate).pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()
    assert (other * run.model.weights.layers[0]["linear_attn.norm.weight"] - heads).abs().max() > 0.1


def test_deltanet_alpha_and_beta_are_between_0_and_1() -> None:
    _, (alpha, beta) = values("qwen3.5", 0, "deltanet.alpha", "deltanet.beta")
    for each in (alpha, beta):
        assert each.min() > 0
        assert each.max() < 1


def test_a_map_of_one_token_is_one_number_a_head() -> None:
    for name, site in (("llama", "attention.pattern"), ("granite", "mamba2.map"), ("qwen3.5", "deltanet.map")):
        run = tiny(name).model.run("a", record=[site])
        for found in run.values[site].values():
            assert found.shape == (len(found), 1, 1)
            assert found.isfinite().all()
    ones = tiny("llama").model.run("a", record=["attention.pattern:0"]).values["attention.pattern"][0]
    assert torch.equal(ones, torch.ones(4, 1, 1))
