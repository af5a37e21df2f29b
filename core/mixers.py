"""The few functions that the models share: norms, RoPE, attention, Mamba2's scan and the gated delta rule.

Axes, in every docstring: batch b, token t (the one that reads), token s (the one that is read), head h, group g,
channel. Each mixer comes as the form that the models run, as its exact token-by-token map, and, for the two recurrent
ones, as the loop over tokens that their papers define: the page's explanation and the tests' reference.
"""

from collections.abc import Iterator
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from core.taps import Tap

QUERIES = 64  # tokens a block of attention
FUSED_FROM = 768  # tokens: below, the library's fused kernel takes a fifth to a half longer than our blocks
CHUNK = 64  # tokens a chunk in Mamba2: the per-token loop is 9 times slower at 1,410 tokens
DELTA_CHUNK = 32  # tokens a chunk in the gated delta rule: a seventh faster than 64 at 1,410 tokens
DECAYS = 16  # tokens a block of a longer map's decays


# --- norms ---------------------------------------------------------------------------------------------------------


def rms_norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """x / √(mean of x² + eps) · weight, over the last axis (Zhang & Sennrich 2019)."""
    return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)).mul_(weight)


def l2_norm(x: Tensor, length: float = 1.0, eps: float = 1e-6) -> Tensor:
    """x / √(Σ x² + eps) · length over the last axis: eps stands inside the root, as in the DeltaNet kernels."""
    return x * (torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + eps) * length)


# --- positions -----------------------------------------------------------------------------------------------------


def rope_frequencies(dim: int, theta: float, factor: float = 1.0) -> Tensor:
    """Radians a position, one for each of the dim/2 bands, in float32 whatever the model's dtype.

    The order of operations is the reference's: theta ** (−i / dim) drifts by 1e-4 in a cosine at position 1,409.
    `factor` > 1 slows every band down (linear scaling).
    """
    return 1.0 / (theta ** (torch.arange(0, dim, 2, dtype=torch.float32) / dim)) / factor


@lru_cache(maxsize=16)
def rope_table(tokens: int, dim: int, theta: float, factor: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosine and sine of every position's angle for each channel that turns: (token, dim) each.

    Channels i and i + dim/2 turn together, as the two coordinates of one point; the first takes its sine negative.
    """
    angle = torch.arange(tokens, dtype=torch.float32)[:, None] * rope_frequencies(dim, theta, factor)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat((cos, cos), dim=-1).to(dtype), torch.cat((-sin, sin), dim=-1).to(dtype)


def rope(x: Tensor, table: tuple[Tensor, Tensor]) -> Tensor:
    """Turns channel i and channel i + dim/2 of x (b, h, t, channel) by their position's angle (Su et al. 2021).

    Channels past the table's carry no position and pass.
    """
    cos, sin = table
    turning, rest = x[..., : cos.shape[-1]], x[..., cos.shape[-1] :]
    partners = turning.roll(cos.shape[-1] // 2, dims=-1)
    turned = (turning * cos).addcmul_(partners, sin)
    return torch.cat((turned, rest), dim=-1) if rest.shape[-1] else turned


# --- attention -----------------------------------------------------------------------------------------------------


def split_heads(x: Tensor, head_dim: int) -> Tensor:
    """(b, t, h · head_dim) -> (b, h, t, head_dim)."""
    heads: Tensor = x.unflatten(-1, (-1, head_dim))
    return heads.transpose(1, 2)


def repeat_heads(x: Tensor, times: int) -> Tensor:
    """(b, h, …) -> (b, h · times, …): each head so many times in a row, for the heads that share it."""
    return x if times == 1 else x.repeat_interleave(times, dim=1)


def attention_mask(tokens: int, window: int | None) -> Tensor:
    """(t, s), True where t sees s: itself, what came before, and with a window the last `window` of those."""
    seen = torch.ones(tokens, tokens, dtype=torch.bool).tril()
    return seen if window is None else seen.triu(1 - window)


@lru_cache(maxsize=32)
def _unseen(behind: int, rows: int, window: int | None, dtype: torch.dtype) -> Tensor:
    """What `rows` tokens' scores with the `behind` tokens before them and with each other get added: 0, or −∞."""
    unseen = ~attention_mask(behind + rows, window)[behind:]
    return torch.zeros(unseen.shape, dtype=dtype).masked_fill_(unseen, float("-inf"))


def pattern_blocks(q: Tensor, k: Tensor, scale: float, window: int | None) -> Iterator[tuple[slice, slice, Tensor]]:
    """Softmax of the scaled, masked scores, `QUERIES` tokens that read at a time (Vaswani et al. 2017).

    Each block is the rows of q that read, the tokens s that are read, and (b, kv head, h of it, t, s). What no token of
    a block sees is not built: the future, and what its window does not reach. Where q has fewer tokens than k, they are
    the last ones.
    """
    q, keys = q.unflatten(1, (k.shape[1], -1)) * scale, k.transpose(-1, -2)
    before = k.shape[2] - q.shape[3]
    for row in range(0, q.shape[3], QUERIES):
        rows = q[:, :, :, row : row + QUERIES]
        count, begin, end = rows.shape[3], before + row, before + row + rows.shape[3]
        first = 0 if window is None else max(0, begin + 1 - window)
        scores = (rows.flatten(2, 3) @ keys[..., first:end]).unflatten(2, rows.shape[2:4])
        partly = begin if window is None else first  # what stands before it is seen by all tokens of the block
        scores[..., partly - first :] += _unseen(begin - partly, count, window, q.dtype)
        yield slice(row, row + count), slice(first, end), scores.softmax(-1)


def empty_pattern(q: Tensor, k: Tensor) -> Tensor:
    """Room for the pattern of q (b, h, t, channel) and k (b, kv head, s, channel): (b, kv head, h of it, t, s)."""
    return q.new_empty(q.shape[0], k.shape[1], q.shape[1] // k.shape[1], q.shape[2], k.shape[2])


def _write(pattern: Tensor, rows: slice, seen: slice, block: Tensor) -> None:
    """A block of `pattern_blocks` into the whole pattern, and 0 for all that its tokens do not see."""
    pattern[..., rows, : seen.start] = 0
    pattern[..., rows, seen] = block
    pattern[..., rows, seen.stop :] = 0


def attention_pattern(q: Tensor, k: Tensor, scale: float, window: int | None = None) -> Tensor:
    """All blocks as one map: (b, h, t, s), each row summing to 1.

    q: (b, h, t, channel). k: (b, kv head, s, channel); query head i reads kv head i // (h / kv heads).
    """
    pattern = empty_pattern(q, k)
    for rows, seen, block in pattern_blocks(q, k, scale, window):
        _write(pattern, rows, seen, block)
    return pattern.flatten(1, 2)


def attention(q: Tensor, k: Tensor, v: Tensor, scale: float, tap: Tap, window: int | None = None) -> Tensor:
    """What each head reads: (b, t, h, channel), just before the output projection.

    A long text's by the library's fused kernel, unless somebody asked for the whole pattern, a window is in the way, or
    the tap let only the last tokens read.
    """
    q, k, v = tap("attention.query", q), tap("attention.key", k), tap("attention.value", v)
    tokens, heads = k.shape[2], tap.heads("attention.pattern", q.shape[1])
    whole = len(heads) == q.shape[1]
    if heads and not whole:
        shared = q.shape[1] // k.shape[1]
        theirs = k[:, [head // shared for head in heads]]
        tap("attention.pattern", attention_pattern(q[:, heads], theirs, scale, window))
    fits = q.shape[2] == tokens and (window is None or window >= tokens)
    if tokens >= FUSED_FROM and fits and not whole:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale, enable_gqa=True).transpose(1, 2)
    pattern = empty_pattern(q, k) if whole else None
    zs = []
    for rows, seen, block in pattern_blocks(q, k, scale, window):
        if pattern is not None:
            _write(pattern, rows, seen, block)
        z = block.flatten(2, 3) @ v[:, :, seen]
        zs.append(z.unflatten(2, block.shape[2:4]).movedim(3, 1))  # (b, t, kv head, h of it, channel)
    if pattern is not None:
        tap("attention.pattern", pattern.flatten(1, 2))
    return torch.cat(zs, dim=1).flatten(2, 3)


# --- what the two recurrent mixers share ---------------------------------------------------------------------------


def causal_conv(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Each channel's weighted sum of its last k values: x (b, t, channel), weight (channel, 1, k).

    As an image one pixel high, channels last: for that the library has a kernel, six times as fast as for a sequence.
    """
    pixels = x.transpose(1, 2).unsqueeze(2)
    y = F.conv2d(pixels, weight.unsqueeze(2), bias, padding=(0, weight.shape[-1] - 1), groups=len(weight))
    return y.squeeze(2).transpose(1, 2)[:, : x.shape[1]]


def decay_between(log_decay: Tensor) -> Tensor:
    """exp of the sum of log_decay over (s, t]: (…, t) -> (…, t, s). Where s > t it is from 0 to 1: the caller masks.

    The running sum is float64: with a large step somewhere before s, the float32 difference of two running sums
    would have lost the digits that the product between s and t is made of.
    """
    dtype, tokens, log_decay = log_decay.dtype, log_decay.shape[-1], log_decay.contiguous()
    if tokens <= CHUNK:
        return _decays(log_decay.double().cumsum(-1), dtype)
    # From one block of tokens to a later one a decay is a product: up to the later block, and on within it. Neither
    # factor is above 1. So an exponential is needed for one entry in `DECAYS`, and for those within a block.
    count = -(-tokens // DECAYS)
    total = F.pad(log_decay, (0, count * DECAYS - tokens)).double().cumsum(-1)
    blocks = total.unflatten(-1, (count, DECAYS))
    before = F.pad(blocks[..., :-1, -1:], (0, 0, 1, 0))
    up_to = (before - total.unsqueeze(-2)).clamp_(max=0).to(dtype).exp_()  # (…, block, s)
    on = (blocks - before).to(dtype).exp_()  # (…, block, t of it)
    found = on.unsqueeze(-1) * up_to.unsqueeze(-2)
    within = found.unflatten(-1, (count, DECAYS)).diagonal(dim1=-4, dim2=-2)
    within.copy_(_decays(blocks, dtype).movedim(-3, -1))
    whole: Tensor = found.flatten(-3, -2)[..., :tokens, :tokens]
    return whole


def _decays(total: Tensor, dtype: torch.dtype) -> Tensor:
    """`decay_between` of the running sum (…, t), entry by entry."""
    return (total.unsqueeze(-1) - total.unsqueeze(-2)).to(dtype).tril_().exp_()


def _in_chunks(tokens: int, largest: int) -> tuple[int, int]:
    """How many chunks of one size a text makes, and that size, at most `largest`; up to 2 · `CHUNK` tokens are one."""
    count = 1 if tokens <= 2 * CHUNK else -(-tokens // largest)
    return count, -(-tokens // count)


def _chunks(x: Tensor, largest: int) -> Tensor:
    """(b, h, t, …) -> (b, h, chunk, t, …); a token that pads the end is 0 and writes nothing.

    In memory a token's heads stay side by side, as the projection left them.
    """
    count, size = _in_chunks(x.shape[2], largest)
    x, missing = x.transpose(1, 2), count * size - x.shape[2]
    if missing:
        x = F.pad(x, (0, 0) * (x.ndim - 2) + (0, missing))
    chunked: Tensor = x.unflatten(1, (count, size))
    return chunked.movedim(3, 1)


def _chunks_by_head(x: Tensor, largest: int) -> Tensor:
    """(b, h, t, …) -> (b · h, chunk, t, …), padded in the same way. In memory each head's tokens lie side by side."""
    count, size = _in_chunks(x.shape[2], largest)
    padded = x.new_empty(*x.shape[:2], count * size, *x.shape[3:])
    padded[:, :, : x.shape[2]] = x
    padded[:, :, x.shape[2] :] = 0
    chunked: Tensor = padded.flatten(0, 1).unflatten(1, (count, size))
    return chunked


# --- Mamba2 (Dao & Gu 2024, "Transformers are SSMs") -----------------------------------------------------------------
#
# Paper letters: x the values, dt the step, A < 0 the decay rate of a head, B what a token writes under, C what it
# reads by. A head's state is a (state, channel) matrix. D · x, the gate and its norm are the model file's.


def mamba2_loop(x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor) -> Tensor:
    """The definition, one token after the other. Shapes as in `mamba2`."""
    per_group = x.shape[1] // B.shape[1]
    B, C = repeat_heads(B, per_group), repeat_heads(C, per_group)
    state = x.new_zeros(*x.shape[:2], B.shape[-1], x.shape[-1])
    ys = []
    for t in range(x.shape[2]):
        write = dt[:, :, t, None, None] * B[:, :, t, :, None] * x[:, :, t, None, :]
        state = torch.exp(dt[:, :, t] * A)[..., None, None] * state + write
        ys.append((C[:, :, t, None, :] @ state).squeeze(-2))
    return torch.stack(ys, dim=2)


def mamba2(x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor) -> Tensor:
    """The same in chunks: within a chunk by its map, between chunks by the state.

    x: (b, h, t, channel); dt: (b, h, t); A: (h,); B and C: (b, g, t, state), shared by the heads of a group.
    Returns (b, h, t, channel).
    """
    tokens, groups, channels = x.shape[2], B.shape[1], x.shape[3]
    x, dt, B, C = (_chunks(each, CHUNK) for each in (x, dt, B, C))
    x = x * dt.unsqueeze(-1)
    log_decay = (dt * A[:, None, None]).contiguous()  # (b, h, chunk, t)

    # 1. Within the chunk: M @ x, with M = C·B · decay · dt.
    scores = (C @ B.transpose(-1, -2)).tril()
    maps = decay_between(log_decay).unflatten(1, (groups, -1)) * scores.unsqueeze(2)
    y = maps.flatten(1, 2) @ x
    if x.shape[2] > 1:
        # 2. What each chunk but the last writes into the states by its end. A group's states lie side by side: they
        #    share B and C.
        total = log_decay.double().cumsum(-1)
        to_end = (total[..., :-1, -1:] - total[..., :-1, :]).to(x.dtype).exp()
        by_group = (x[:, :, :-1] * to_end.unsqueeze(-1)).unflatten(1, (groups, -1)).movedim(2, 4).flatten(4)
        writes = B[:, :, :-1].transpose(-1, -2) @ by_group  # (b, g, chunk, state, head of the group · channel)
        # 3. The states that each chunk but the first starts from.
        whole = total[..., -1].to(x.dtype).exp().unflatten(1, (groups, -1)).transpose(2, 3)
        whole = whole.repeat_interleave(channels, dim=-1).unsqueeze(-2)
        starts = [writes[:, :, 0]]
        for c in range(1, writes.shape[2]):
            starts.append(torch.addcmul(writes[:, :, c], whole[:, :, c], starts[-1]))
        # 4. What each token reads from them.
        reads = (C[:, :, 1:] @ torch.stack(starts, dim=2)).unflatten(4, (-1, channels)).movedim(4, 2).flatten(1, 2)
        y[:, :, 1:].addcmul_(reads, total[..., 1:, :].to(x.dtype).exp().unsqueeze(-1))
    whole_text: Tensor = y.flatten(2, 3)
    return whole_text[:, :, :tokens]


def mamba2_map(dt: Tensor, A: Tensor, B: Tensor, C: Tensor, heads: list[int]) -> Tensor:
    """M[t, s] = C_t · (Π decay over (s, t]) · dt_s · B_s of the given heads: (b, len(heads), t, s).

    M @ x is what the heads read from the past and from the token itself; D · x is not part of it.
    """
    group = [head // (dt.shape[1] // B.shape[1]) for head in heads]
    scores = (C[:, group] @ B[:, group].transpose(-1, -2)).tril()
    dt = dt[:, heads].contiguous()
    return scores.mul_(decay_between(dt * A[heads, None])).mul_(dt.unsqueeze(-2))


# --- gated delta rule (Yang, Kautz & Hatamizadeh 2024, "Gated Delta Networks") ---------------------------------------
#
# α = exp(log_alpha) is how much of the state is kept, β how much of the old value under this key is replaced.
# q and k come L2-normalised, q with its 1/√d.


def gated_delta_loop(q: Tensor, k: Tensor, v: Tensor, log_alpha: Tensor, beta: Tensor) -> Tensor:
    """The definition, one token after the other. Shapes as in `gated_delta`."""
    state = v.new_zeros(*k.shape[:2], k.shape[-1], v.shape[-1])
    ys = []
    for t in range(k.shape[2]):
        key, value = k[:, :, t, :, None], v[:, :, t, None, :]
        state = log_alpha[:, :, t, None, None].exp() * state
        held = key.transpose(-1, -2) @ state  # what the state has under this key: the erase term
        state = state + key * beta[:, :, t, None, None] * (value - held)
        ys.append((q[:, :, t, None, :] @ state).squeeze(-2))
    return torch.stack(ys, dim=2)


def gated_delta(q: Tensor, k: Tensor, v: Tensor, log_alpha: Tensor, beta: Tensor) -> Tensor:
    """The same in chunks: within a chunk one triangular system, between chunks the state.

    q, k: (b, h, t, key channel); v: (b, h, t, value channel); log_alpha ≤ 0 and beta: (b, h, t).
    Returns (b, h, t, value channel).
    """
    tokens, heads = k.shape[2], k.shape[1]
    q, k, v, log_alpha, beta = (_chunks_by_head(x, DELTA_CHUNK) for x in (q, k, v, log_alpha, beta))
    count, size = k.shape[1:3]
    decay = decay_between(log_alpha)
    total = log_alpha.double().cumsum(-1)

    # 1. Within the chunk: how a token's key and its query overlap with the keys before it. A chunk's keys and queries
    #    stand one below the other: all that is read, of the chunk or of the state, comes by one product.
    asked, keys = torch.cat((k, q), dim=2), k.transpose(-1, -2)
    overlap, reads = ((asked @ keys).unflatten(2, (2, size)) * decay.unsqueeze(2)).unbind(2)
    reads = reads.tril()
    writes = delta_writes(overlap, beta)
    written = writes[:, 0] @ v[:, 0]  # what each token really writes: its value less what stood under its key
    ys = [reads[:, 0] @ written]
    if count > 1:
        # 2. Chunk after chunk: on to the next state, then what that holds under the chunk's keys and queries.
        asked = asked * total.to(q.dtype).exp().repeat(1, 1, 2).unsqueeze(-1)  # not in place: training still needs it
        whole = total[..., -1].to(q.dtype).exp()[..., None, None]
        keys = keys * (total[..., -1:] - total).to(q.dtype).exp().unsqueeze(-2)
        state = v.new_zeros(len(k), k.shape[-1], v.shape[-1])
        for c in range(1, count):
            state = torch.baddbmm(whole[:, c - 1] * state, keys[:, c - 1], written)
            held, read = (asked[:, c] @ state).split(size, dim=1)
            written = writes[:, c] @ (v[:, c] - held)
            ys.append(torch.baddbmm(read, reads[:, c], written))
    whole_text: Tensor = torch.cat(ys, dim=1).unflatten(0, (-1, heads))
    return whole_text[:, :, :tokens]


def delta_writes(overlap: Tensor, beta: Tensor) -> Tensor:
    """W[t, s]: how much of the value that token s brings stands under t's key after t's write: (…, t, s).

    Solves W = diag(β) − β · (overlap below the diagonal) · W.
    """
    # The solver looks at what is below the diagonal only, and takes the diagonal as 1.
    found: Tensor = torch.linalg.solve_triangular(
        overlap * beta.unsqueeze(-1), torch.diag_embed(beta), upper=False, unitriangular=True
    )
    return found


def gated_delta_map(q: Tensor, k: Tensor, log_alpha: Tensor, beta: Tensor) -> Tensor:
    """M[t, s] = q_tᵀ (Π over (s, t] of α_r (I − β_r k_r k_rᵀ)) β_s k_s, the erase term included: (b, h, t, s).

    M @ v is the mixer's output before its norm and gate. One triangular system over the whole text.
    """
    keys, decay = k.transpose(-1, -2), decay_between(log_alpha)
    return ((q @ keys).tril() * decay) @ delta_writes(k @ keys * decay, beta)
