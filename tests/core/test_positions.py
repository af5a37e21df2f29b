import pytest
import torch

from core.errors import TokenwalkError
from core.mixers import rope, rope_table
from core.model import Rotary
from core.positions import band_weights, bands, learned_positions, rope_similarity
from tests.tiny import BASE, tiny

PUBLISHED = Rotary(dim=64, head_dim=64, theta=10_000.0, factor=1.0)  # the article's second model, context 1,024


def test_the_published_bands_are_reproduced() -> None:
    found = bands(PUBLISHED, 1024)
    speeds = [band.speed for band in found]
    assert (len(found), speeds.count("fast"), speeds.count("middle"), speeds.count("slow")) == (32, 6, 12, 14)
    assert found[0].wavelength == pytest.approx(6.3, abs=0.05)
    assert found[-1].wavelength == pytest.approx(47_000, rel=0.01)


def test_the_published_similarity_by_distance_is_reproduced() -> None:
    curve = rope_similarity(PUBLISHED, 1024)
    assert float(curve[0]) == 1
    assert float(curve[10]) == pytest.approx(0.66, abs=0.01)
    assert float(curve[900:].mean()) == pytest.approx(0.2, abs=0.06)


def test_similarity_is_that_of_a_vector_turned_to_two_positions() -> None:
    x = torch.ones(1, 1, 1, 64).expand(1, 1, 12, 64)
    turned = rope(x, rope_table(12, 64, 10_000.0, 1.0, torch.float32))[0, 0]
    scores = turned @ turned[0] / 64
    torch.testing.assert_close(rope_similarity(PUBLISHED, 12), scores, rtol=1e-5, atol=1e-5)


def test_a_factor_slows_every_band_down() -> None:
    slow = bands(Rotary(64, 64, 10_000.0, 4.0), 1024)
    assert [s.wavelength / b.wavelength for s, b in zip(slow, bands(PUBLISHED, 1024), strict=True)] == pytest.approx(
        [4.0] * 32
    )


@pytest.mark.parametrize("name", ["llama", "qwen3", "gemma3", "qwen3.5"])
def test_band_weights_are_the_products_band_by_band(name: str) -> None:
    model = tiny(name).model
    layer = next(at for at in range(model.layers) if model.rotary(at) is not None)
    run = model.run("hello there", record=["residual.before", "attention.query", "attention.key"])
    rotary = model.rotary(layer)
    assert rotary is not None
    q, k = (run.values[f"attention.{each}"][layer] for each in ("query", "key"))
    share, half = len(q) // len(k), rotary.dim // 2
    found = band_weights(run, layer)
    for head in range(len(q)):
        direct = torch.zeros(half)
        for t in range(q.shape[1]):
            for s in range(t + 1):
                for i in range(half):
                    a, b = q[head, t], k[head // share, s]
                    direct[i] += abs(float(a[i] * b[i] + a[half + i] * b[half + i]))
        torch.testing.assert_close(found[head], direct / direct.sum(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["gpt2", "granite"])
def test_a_model_without_rope_has_no_bands(name: str) -> None:
    model = tiny(name).model
    assert all(model.rotary(layer) is None for layer in range(model.layers))
    with pytest.raises(TokenwalkError, match="has no RoPE"):
        band_weights(model.run("hi", record=["residual.before"]), 0)


def test_in_gemma_local_and_global_layers_turn_at_their_own_base() -> None:
    model = tiny("gemma3").model
    thetas = {kind: model.rotary(layer).theta for layer, kind in enumerate(model.mixers)}  # type: ignore[union-attr]
    assert thetas == {"local attention": 10_000.0, "attention": 1_000_000.0}


def test_only_gpt2_has_a_table_of_positions() -> None:
    assert [name for name in BASE if learned_positions(tiny(name).model) is not None] == ["gpt2"]


def test_what_a_table_knows_of_distance_is_measured_over_all_pairs() -> None:
    model = tiny("gpt2").model
    table = model.weights.outside["wpe.weight"]
    found = learned_positions(model)
    assert found is not None
    rows = torch.nn.functional.normalize(table.double(), dim=-1)
    cosine = rows @ rows.T
    later, earlier = torch.tril_indices(len(table), len(table), -1)
    values, distance = cosine[later, earlier], later - earlier
    means = torch.zeros(len(table)).double().index_add(0, distance, values) / torch.bincount(distance).clamp(min=1)
    left = (values - means[distance]).pow(2).sum() / (values - values.mean()).pow(2).sum()
    assert found.r_squared == pytest.approx(1 - float(left), abs=1e-3)
    torch.testing.assert_close(found.similarity[1:].double(), means[1:], rtol=1e-4, atol=1e-4)
    _, lengths, _ = torch.linalg.svd(table - table.mean(0), full_matrices=False)
    torch.testing.assert_close(found.components.norm(dim=0), lengths[:3], rtol=1e-3, atol=1e-3)
