import pytest
import torch

from core.embedding import nearest, row, scale
from core.model import Model
from core.norm import mean, normed, root_mean_square
from core.stream import growth
from pages.frame.state import PROMPT
from tests.tiny import BASE, tiny

OFF = ["mixer:0"]


@pytest.mark.parametrize("name", BASE)
def test_growth_is_the_lengths_of_what_a_run_records(name: str) -> None:
    model = tiny(name).model
    sites = ["residual.before", "residual.between", "residual.after", "mixer.write", "ffn.write"]
    run = model.run("hello there", record=sites)
    seen = growth(run)
    for layer in range(model.layers):
        before, between, after = (run.values[site][layer] for site in sites[:3])
        torch.testing.assert_close(seen.before[layer], before.norm(dim=-1))
        torch.testing.assert_close(seen.after[layer], after.norm(dim=-1))
        torch.testing.assert_close(seen.mixer[layer], (between - before).norm(dim=-1))
        torch.testing.assert_close(seen.ffn[layer], (after - between).norm(dim=-1))
        if "mixer.bias" not in {site.name for site in model.sites}:
            torch.testing.assert_close(
                seen.mixer[layer], run.values["mixer.write"][layer].norm(dim=-1), rtol=1e-3, atol=1e-4
            )
        cosine = torch.cosine_similarity(between - before, before, dim=-1)
        torch.testing.assert_close(seen.mixer_cosine[layer], cosine)


@pytest.mark.parametrize("name", BASE)
def test_growth_follows_the_switches(name: str) -> None:
    model = tiny(name).model
    run = model.run("hello there", record=["residual.before"], off=OFF)
    added = growth(run).mixer[0]
    bias = model.run("hello there", record=["mixer.bias"]).values["mixer.bias"][0] if name.startswith("gpt2") else None
    expected = torch.zeros_like(added) if bias is None else bias.norm().expand_as(added)
    torch.testing.assert_close(added, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", BASE)
def test_the_parts_of_a_norm_are_the_norm(name: str) -> None:
    model = tiny(name).model
    run = model.run("hello there", record=["residual.before", "mixer.input"])
    w = model.weights.layers[1]
    seen = normed(run, 1, 4)
    torch.testing.assert_close(seen.after, run.values["mixer.input"][1][4])
    if model.norm == "LayerNorm":
        again = seen.scaled * w["ln_1.weight"] + w["ln_1.bias"]
        assert abs(mean(seen.scaled)) < 1e-5
    else:
        added = 1 if name in ("gemma3", "qwen3.5") else 0
        again = seen.scaled * (added + w["input_layernorm.weight"])
    torch.testing.assert_close(again, seen.after, rtol=1e-4, atol=1e-5)
    assert root_mean_square(seen.scaled) == pytest.approx(1, abs=1e-3)


def test_the_nearest_rows_are_those_of_the_largest_cosine(smollm2: Model) -> None:
    to = smollm2.tokenizer.first(" to")
    table = smollm2.table()
    cosines = torch.nn.functional.normalize(table, dim=-1) @ torch.nn.functional.normalize(row(smollm2, to), dim=-1)
    cosines[to] = -2
    best, ids = cosines.topk(8)
    found = nearest(smollm2, to, 8)
    assert [each.id for each in found] == ids.tolist()
    assert [each.cosine for each in found] == pytest.approx(best.tolist(), abs=1e-5)
    assert found[0].text == smollm2.tokenizer.text(found[0].id)


@pytest.mark.parametrize("name", BASE)
def test_the_scale_of_the_embedding_is_the_models(name: str) -> None:
    model = tiny(name).model
    run = model.run("hi", record=[site.name for site in model.sites if site.name.startswith("embedding")])
    expected = {"granite": getattr(model, "embedding_multiplier", 1), "gemma3": model.width**0.5}
    key = next((key for key in expected if name.startswith(key)), None)
    assert scale(run, 1) == pytest.approx(expected[key] if key else 1.0, rel=1e-5)


def test_the_stream_of_the_sentence_grows_in_smollm2(smollm2: Model) -> None:
    run = smollm2.run(PROMPT, record=["residual.before", "residual.after"])
    seen = growth(run)
    assert float(seen.after[-1, -1]) == pytest.approx(float(run.stream[-1].norm()), rel=1e-5)
    assert float(seen.before[0, -1]) == pytest.approx(float(row(smollm2, run.ids[-1]).norm()), rel=1e-5)
