"""The shared functions: each recurrent mixer in its three forms, RoPE, attention, the convolution and the norms."""

import pytest
import torch
import torch.nn.functional as F
import transformers
from torch import Tensor
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from core.mixers import (
    attention,
    attention_mask,
    attention_pattern,
    causal_conv,
    decay_between,
    gated_delta,
    gated_delta_loop,
    gated_delta_map,
    l2_norm,
    mamba2,
    mamba2_loop,
    mamba2_map,
    rms_norm,
    rope,
    rope_frequencies,
    rope_table,
)
from core.taps import PLAIN, Newest, Recorder, Request

LENGTHS = [1, 63, 64, 65, 127, 128, 129, 420]


def same(value: Tensor, right: Tensor, relative: float = 1e-5) -> None:
    assert value.shape == right.shape
    assert (value - right).abs().max() <= relative * right.abs().max()


# --- Mamba2 -----------------------------------------------------------------------------------------------------------


def mamba2_inputs(tokens: int, groups: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
    g = torch.Generator().manual_seed(tokens + groups)
    x = torch.randn(2, 4, tokens, 8, generator=g, dtype=dtype)
    dt = F.softplus(torch.randn(2, 4, tokens, generator=g, dtype=dtype) - 1)
    A = -torch.rand(4, generator=g, dtype=dtype) - 0.05
    B, C = torch.randn(2, 2, groups, tokens, 16, generator=g, dtype=dtype)
    return x, dt, A, B, C


@pytest.mark.parametrize("groups", [1, 2], ids=["one group", "two groups"])
@pytest.mark.parametrize("tokens", LENGTHS)
def test_mamba2_in_chunks_is_the_loop_and_is_the_map(tokens: int, groups: int) -> None:
    x, dt, A, B, C = mamba2_inputs(tokens, groups)
    right = mamba2_loop(x, dt, A, B, C)
    same(mamba2(x, dt, A, B, C), right)
    same(mamba2_map(dt, A, B, C, [0, 1, 2, 3]) @ x, right)
    same(right.double(), mamba2_loop(*(each.double() for each in (x, dt, A, B, C))))


def test_mamba2s_map_is_the_formula() -> None:
    _, dt, A, B, C = mamba2_inputs(5, 2, torch.float64)
    found = mamba2_map(dt, A, B, C, [3])[0, 0]
    for t in range(5):
        for s in range(5):
            decay = torch.exp(dt[0, 3, s + 1 : t + 1] * A[3]).prod()
            right = C[0, 1, t] @ B[0, 1, s] * decay * dt[0, 3, s] if s <= t else torch.zeros((), dtype=torch.float64)
            torch.testing.assert_close(found[t, s], right)


def test_mamba2s_map_of_some_heads_is_those_of_all() -> None:
    _, dt, A, B, C = mamba2_inputs(20, 2)
    every = mamba2_map(dt, A, B, C, [0, 1, 2, 3])
    assert torch.equal(mamba2_map(dt, A, B, C, [1, 3]), every[:, [1, 3]])


def test_the_heads_of_a_mamba2_group_share_b_and_c() -> None:
    x, dt, A, B, C = mamba2_inputs(10, 2)
    apart = mamba2(x, dt, A, B.repeat_interleave(2, 1), C.repeat_interleave(2, 1))
    same(mamba2(x, dt, A, B, C), apart)


def test_mamba2_with_a_large_step_has_no_nan_and_forgets() -> None:
    x, dt, A, B, C = mamba2_inputs(129, 1)
    dt[:, :, 70] = F.softplus(torch.tensor(2000.0))
    y = mamba2(x, dt, A, B, C)
    assert y.isfinite().all()
    same(y[:, :, 71:], mamba2_loop(x[:, :, 70:], dt[:, :, 70:], A, B[:, :, 70:], C[:, :, 70:])[:, :, 1:])


# --- gated delta rule -------------------------------------------------------------------------------------------------


def delta_inputs(tokens: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
    """Keys that overlap: a common direction, and noise."""
    g = torch.Generator().manual_seed(tokens)
    common = torch.randn(2, 3, 1, 16, generator=g, dtype=dtype)
    k = l2_norm(common + torch.randn(2, 3, tokens, 16, generator=g, dtype=dtype))
    q = l2_norm(common + torch.randn(2, 3, tokens, 16, generator=g, dtype=dtype)) / 4
    v = torch.randn(2, 3, tokens, 8, generator=g, dtype=dtype)
    log_alpha = -F.softplus(torch.randn(2, 3, tokens, generator=g, dtype=dtype) - 3)
    beta = torch.randn(2, 3, tokens, generator=g, dtype=dtype).sigmoid()
    return q, k, v, log_alpha, beta


@pytest.mark.parametrize("tokens", LENGTHS)
def test_deltanet_in_chunks_is_the_loop_and_is_the_map(tokens: int) -> None:
    q, k, v, log_alpha, beta = delta_inputs(tokens)
    right = gated_delta_loop(q, k, v, log_alpha, beta)
    same(gated_delta(q, k, v, log_alpha, beta), right)
    same(gated_delta_map(q, k, log_alpha, beta) @ v, right)
    same(right.double(), gated_delta_loop(*(each.double() for each in (q, k, v, log_alpha, beta))))


def test_deltanets_map_is_the_formula_with_its_erase_term() -> None:
    q, k, _, log_alpha, beta = (each[:1, :1] for each in delta_inputs(6, torch.float64))
    found = gated_delta_map(q, k, log_alpha, beta)[0, 0]
    q, k, alpha, beta = q[0, 0], k[0, 0], log_alpha[0, 0].exp(), beta[0, 0]
    for t in range(6):
        for s in range(6):
            carried = beta[s] * k[s]
            for r in range(s + 1, t + 1):
                carried = alpha[r] * (carried - beta[r] * k[r] * (k[r] @ carried))
            right = q[t] @ carried if s <= t else torch.zeros((), dtype=torch.float64)
            torch.testing.assert_close(found[t, s], right)


def test_a_deltanet_map_without_the_erase_term_is_another_thing() -> None:
    q, k, v, log_alpha, beta = delta_inputs(64)
    right = gated_delta_loop(q, k, v, log_alpha, beta)
    without = (q @ k.transpose(-1, -2)) * decay_between(log_alpha) * beta.unsqueeze(-2)
    assert (without @ v - right).abs().max() > 0.05 * right.abs().max()


def test_deltanet_replaces_the_value_under_a_repeated_key() -> None:
    key = torch.tensor([1.0, 0.0]).expand(1, 1, 2, 2)
    v = torch.tensor([[5.0, 0.0], [0.0, 7.0]])[None, None]
    still, all_of_it = torch.zeros(1, 1, 2), torch.ones(1, 1, 2)
    y = gated_delta(key, key, v, still, all_of_it)
    torch.testing.assert_close(y, v)  # nothing of the first value is left
    torch.testing.assert_close(gated_delta_map(key, key, still, all_of_it)[0, 0], torch.eye(2))


def test_deltanet_with_a_full_stop_in_the_middle_has_no_nan_and_forgets() -> None:
    q, k, v, log_alpha, beta = delta_inputs(129)
    log_alpha[:, :, 70] = -5000.0
    y = gated_delta(q, k, v, log_alpha, beta)
    assert y.isfinite().all()
    same(y[:, :, 70:], gated_delta_loop(*(each[:, :, 70:] for each in (q, k, v, log_alpha, beta))))


# --- what they share --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [40, 105, 140])  # one chunk, one whose decays come by blocks, several
def test_gradients_in_chunks_are_the_loops(tokens: int) -> None:
    """Training goes through these: no value that it needs again is written over."""
    for chunked, loop, values in (
        (mamba2, mamba2_loop, mamba2_inputs(tokens, 1, torch.float64)),
        (gated_delta, gated_delta_loop, delta_inputs(tokens, torch.float64)),
    ):
        found = []
        for run in (chunked, loop):
            given = [value.clone().requires_grad_(True) for value in values]
            found.append(torch.autograd.grad(run(*given).sin().sum(), given))
        torch.testing.assert_close(*found)


@pytest.mark.parametrize("length", [1.0, 0.25])
def test_the_l2_norms_gradient_is_the_formulas(length: float) -> None:
    x = torch.randn(3, 5, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda each: l2_norm(each, length), x)


@pytest.mark.parametrize("tokens", [16, 40, 64, 65, 80, 95, 96, 105, 300])  # past 64 by blocks of 16
def test_decay_between_keeps_its_digits_behind_one_huge_step(tokens: int) -> None:
    g = torch.Generator().manual_seed(0)
    log_decay = -torch.rand(2, tokens, generator=g).t().contiguous().t() * 0.01  # not the order in memory of the result
    log_decay[:, tokens // 2] = -30_000.0
    found = decay_between(log_decay)
    assert found.shape == (2, tokens, tokens)
    assert ((found >= 0) & (found <= 1)).all()
    exact = torch.zeros(2, tokens, tokens, dtype=torch.float64)
    for t in range(tokens):  # each sum added up by itself, from t backwards
        exact[:, t, :t] = log_decay[:, 1 : t + 1].double().flip(-1).cumsum(-1).flip(-1).exp()
        exact[:, t, t] = 1
    torch.testing.assert_close(found.double().tril(), exact, rtol=1e-6, atol=1e-30)
    naive = (log_decay.cumsum(-1).unsqueeze(-1) - log_decay.cumsum(-1).unsqueeze(-2)).exp().tril().double()
    assert (naive - exact).abs().max() > 1e-4  # what a float32 running sum would have given


@pytest.mark.parametrize("tokens", [1, 3, 4, 40])
@pytest.mark.parametrize("with_bias", [True, False], ids=["bias", "no bias"])
def test_the_causal_convolution_is_torchs_with_the_past_padded(tokens: int, with_bias: bool) -> None:
    g = torch.Generator().manual_seed(tokens)
    x, weight = torch.randn(2, tokens, 6, generator=g), torch.randn(6, 1, 4, generator=g)
    bias = torch.randn(6, generator=g) if with_bias else None
    right = F.conv1d(x.transpose(1, 2), weight, bias, padding=3, groups=6)[..., :tokens].transpose(1, 2)
    torch.testing.assert_close(causal_conv(x, weight, bias), right)


def test_rms_norm_is_its_formula() -> None:
    x, weight = torch.tensor([[3.0, 4.0], [0.0, 0.0]]), torch.tensor([2.0, -1.0])
    by_hand = torch.tensor([[2 * 3 / 12.51**0.5, -4 / 12.51**0.5], [0.0, 0.0]])
    torch.testing.assert_close(rms_norm(x, weight, 0.01), by_hand)


def test_l2_norm_has_its_eps_inside_the_root() -> None:
    tiny_key = torch.tensor([3e-4, 4e-4])  # its length is of the order of the root of eps
    torch.testing.assert_close(l2_norm(tiny_key), tiny_key / (25e-8 + 1e-6) ** 0.5)
    assert (l2_norm(tiny_key) - F.normalize(tiny_key, dim=-1)).abs().max() > 0.3
    assert torch.equal(l2_norm(torch.zeros(4)), torch.zeros(4))


# --- positions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theta", "dim", "factor"),
    [(10_000.0, 64, 1.0), (100_000.0, 64, 1.0), (1_000_000.0, 128, 1.0), (10_000_000.0, 64, 1.0), (1e6, 256, 8.0)],
    ids=["llama", "smollm2", "qwen3", "qwen3.5", "gemma3 linear"],
)
def test_rope_angles_are_the_references_at_position_1409_exactly(theta: float, dim: int, factor: float) -> None:
    kind = {"rope_type": "default"} if factor == 1 else {"rope_type": "linear", "factor": factor}
    config = transformers.LlamaConfig(
        hidden_size=dim, num_attention_heads=1, head_dim=dim, rope_parameters={**kind, "rope_theta": theta}
    )
    cos, sin = LlamaRotaryEmbedding(config)(torch.zeros(1), torch.tensor([[1409]]))
    ours = [part[1409] for part in rope_table(1410, dim, theta, factor, torch.float32)]
    assert torch.equal(ours[0], cos[0, 0])
    assert torch.equal(ours[1].abs(), sin[0, 0].abs())
    assert torch.equal(ours[1][: dim // 2], -ours[1][dim // 2 :])
    assert torch.equal(ours[1][dim // 2 :], sin[0, 0, dim // 2 :])


def test_the_other_order_of_operations_would_show_at_position_1409() -> None:
    other = 100_000.0 ** (-torch.arange(0, 64, 2, dtype=torch.float32) / 64)
    off = (1409 * other).cos() - (1409 * rope_frequencies(64, 100_000.0)).cos()
    assert off.abs().max() > 1e-5


def test_a_float64_model_turns_by_the_same_angles() -> None:
    single, double = (rope_table(100, 16, 10_000.0, 1.0, dtype) for dtype in (torch.float32, torch.float64))
    for a, b in zip(single, double, strict=True):
        assert b.dtype == torch.float64
        assert torch.equal(a.double(), b)


@pytest.mark.parametrize("gap", [0, 1, 7, 100])
def test_rope_gives_the_same_score_at_the_same_gap(gap: int) -> None:
    g = torch.Generator().manual_seed(gap)
    q, k = torch.randn(2, 16, generator=g, dtype=torch.float64)
    table = rope_table(300, 16, 10_000.0, 1.0, torch.float64)
    turned_q, turned_k = rope(q.expand(300, 16), table), rope(k.expand(300, 16), table)
    scores = torch.stack([turned_q[t] @ turned_k[t - gap] for t in range(gap, 300)])
    torch.testing.assert_close(scores, scores[:1].expand_as(scores), rtol=0, atol=1e-4)
    assert (turned_q[gap + 1] @ turned_k[0] - scores[0]).abs() > 1e-2  # another gap, another score


def test_rope_leaves_the_channels_past_its_bands_alone() -> None:
    x = torch.randn(1, 2, 10, 16, generator=torch.Generator().manual_seed(0))
    turned = rope(x, rope_table(10, 4, 10_000.0, 1.0, torch.float32))
    assert torch.equal(turned[..., 4:], x[..., 4:])
    assert not torch.equal(turned[..., 1:, :4], x[..., 1:, :4])
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))


# --- attention --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("queries", [64, 8, 7], ids=lambda queries: f"blocks of {queries}")
@pytest.mark.parametrize("window", [None, 1, 5, 19, 20, 21], ids=lambda window: f"window {window}")
@pytest.mark.parametrize("kv_heads", [4, 2, 1], ids=lambda heads: f"{heads} kv heads")
def test_attention_in_blocks_is_attention_fused_and_the_definition(
    kv_heads: int, window: int | None, queries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.mixers.QUERIES", queries)
    g = torch.Generator().manual_seed(kv_heads)
    q = torch.randn(2, 4, 20, 8, generator=g)
    k, v = torch.randn(2, 2, kv_heads, 20, 8, generator=g)
    blocks = attention(q, k, v, 0.3, PLAIN, window)
    recorder = Recorder([Request("attention.pattern")])
    assert torch.equal(attention(q, k, v, 0.3, recorder, window), blocks)
    few = Recorder([Request("attention.pattern", None, 1), Request("attention.pattern", None, 3)])
    assert torch.equal(attention(q, k, v, 0.3, few, window), blocks)
    pattern = recorder.values["attention.pattern"][-1]
    same(few.values["attention.pattern"][-1], pattern[:, [1, 3]])
    monkeypatch.setattr("core.mixers.FUSED_FROM", 0)
    same(attention(q, k, v, 0.3, PLAIN, window), blocks)

    shared = 4 // kv_heads  # query head i reads kv head i // shared
    scores = (q @ k.repeat_interleave(shared, 1).transpose(-1, -2) * 0.3).masked_fill(
        ~attention_mask(20, window), float("-inf")
    )
    same(pattern, scores.softmax(-1))
    same(blocks, (scores.softmax(-1) @ v.repeat_interleave(shared, 1)).transpose(1, 2))


@pytest.mark.parametrize("count", [1, 3, 9, 20])
@pytest.mark.parametrize("window", [None, 1, 5, 19], ids=lambda window: f"window {window}")
def test_the_last_tokens_alone_read_what_they_read_in_the_whole_text(
    window: int | None, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.mixers.QUERIES", 7)
    monkeypatch.setattr("core.mixers.FUSED_FROM", 0)  # which must not take them for the first tokens
    q, k, v = torch.randn(3, 1, 4, 20, 8, generator=torch.Generator().manual_seed(count))
    whole = attention(q, k, v, 0.3, PLAIN, window)
    same(attention(q, k, v, 0.3, Newest(count, 20), window), whole[:, -count:])
    same(attention_pattern(q[:, :, -count:], k, 0.3, window), attention_pattern(q, k, 0.3, window)[:, :, -count:])


def test_the_pattern_is_the_softmax_of_scaled_scores() -> None:
    q, k = torch.tensor([[1.0, 0.0], [2.0, 1.0]])[None, None], torch.tensor([[1.0, 1.0], [0.0, 3.0]])[None, None]
    second = torch.tensor([3 * 0.5, 3 * 0.5]).softmax(0)
    torch.testing.assert_close(attention_pattern(q, k, 0.5)[0, 0], torch.stack((torch.tensor([1.0, 0.0]), second)))


def test_a_window_counts_the_token_itself() -> None:
    assert attention_mask(4, 2).int().tolist() == [[1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]]
    assert attention_mask(3, None).int().tolist() == [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
