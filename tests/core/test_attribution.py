import pytest
import torch

from core.attribution import activations, attribution, promoted, top_neurons, write_back
from core.model import Model
from pages.frame.state import PROMPT
from tests.tiny import BASE, tiny

TEXT = "hello there you"


@pytest.mark.parametrize("off", [[], ["mixer:1"], ["head:0.1", "ffn:2", "neuron:0.3"]], ids=["plain", "mixer", "parts"])
@pytest.mark.parametrize("name", BASE)
def test_the_terms_add_up_to_the_logit(name: str, off: list[str]) -> None:
    run = tiny(name).model.run(TEXT, record=["residual.before"], off=off)
    for target, position in ((3, -1), (70, 4)):
        seen = attribution(run, target, position)
        total = seen.embedding + seen.constant + float(seen.mixer.sum() + seen.ffn.sum())
        largest = float(run.logits[position].abs().max())
        assert seen.logit == pytest.approx(float(run.logits[position, target]), abs=1e-5 * largest)
        assert total == pytest.approx(seen.logit, abs=1e-4 * largest)


@pytest.mark.parametrize("name", BASE)
def test_the_heads_add_up_to_their_mixer(name: str) -> None:
    model = tiny(name).model
    run = model.run(TEXT, record=["residual.before", *(["mixer.bias"] if name == "gpt2" else [])])
    seen = attribution(run, 5, -1)
    for layer in range(model.layers):
        assert len(seen.heads[layer]) == model.heads(layer)
        bias = 0.0
        if name == "gpt2":
            b, x = run.values["mixer.bias"][layer], run.stream[-1]
            direction, _ = model.readout(5)
            bias = float((b - b.mean()) @ direction / (x.var(correction=0) + model.eps).sqrt())
        assert float(seen.heads[layer].sum()) + bias == pytest.approx(float(seen.mixer[layer]), abs=2e-4)


@pytest.mark.parametrize("name", [name for name in BASE if name != "gemma3"])  # there the norm after it changes as well
def test_a_heads_term_is_what_the_stream_loses_without_it(name: str) -> None:
    """In the last layer, with its FFN off: nothing comes after the head, and only the final norm's divisor changes."""
    model = tiny(name).model
    last = model.layers - 1
    run = model.run(TEXT, record=["residual.before"], off=[f"ffn:{last}"])
    without = model.run(TEXT, off=[f"ffn:{last}", f"head:{last}.1"])
    direction, _ = model.readout(9)
    lost = run.stream[-1] - without.stream[-1]
    centred = lost - lost.mean() if model.norm == "LayerNorm" else lost
    x = run.stream[-1] - run.stream[-1].mean() if model.norm == "LayerNorm" else run.stream[-1]
    expected = float(centred @ direction / (x.pow(2).mean() + model.eps).sqrt())
    assert float(attribution(run, 9, -1).heads[last][1]) == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("name", BASE)
def test_the_neurons_add_up_to_their_ffn(name: str) -> None:
    model = tiny(name).model
    run = model.run(TEXT, record=["residual.before", "ffn.write", "ffn.neurons"])
    for layer in range(model.layers):
        a = activations(run, layer, -1)
        torch.testing.assert_close(a, run.values["ffn.neurons"][layer][-1])
        written = a @ write_back(run, layer, a)
        torch.testing.assert_close(written, run.values["ffn.write"][layer][-1], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", BASE)
def test_the_top_neurons_are_those_of_the_largest_contribution(name: str) -> None:
    model = tiny(name).model
    run = model.run(TEXT, record=["residual.before"])
    direction, _ = model.readout(7)
    x = run.stream[-1] - run.stream[-1].mean() if model.norm == "LayerNorm" else run.stream[-1]
    divisor = (x.pow(2).mean() + model.eps).sqrt()
    every = []
    for layer in range(model.layers):
        a = activations(run, layer, -1)
        rows = write_back(run, layer, a)
        rows = rows - rows.mean(-1, keepdim=True) if model.norm == "LayerNorm" else rows
        every += [(float(v), layer, i) for i, v in enumerate(a * (rows @ direction) / divisor)]
    found = top_neurons(run, 7, -1, 5)
    assert [(each.layer, each.neuron) for each in found] == [(layer, i) for _, layer, i in sorted(every)[::-1][:5]]


def test_a_neuron_of_smollm2_promotes_what_its_row_points_to(smollm2: Model) -> None:
    run = smollm2.run(PROMPT, record=["residual.before"])
    alice = smollm2.tokenizer.first(" Alice")
    best = top_neurons(run, alice, len(run.ids) - 1, 1)[0]
    up, down = promoted(run, best.layer, best.neuron, -1)
    assert up[0][1] >= up[-1][1] > 0 > down[-1][1] >= down[0][1]
    off = smollm2.run(PROMPT, off=[f"neuron:{best.layer}.{best.neuron}"])
    assert float(off.logits_at()[alice]) != float(run.logits_at()[alice])


@pytest.mark.parametrize("name", BASE)
def test_the_largest_term_is_the_largest_of_all_halves(name: str) -> None:
    run = tiny(name).model.run("which is it", record=["residual.before"])
    seen = attribution(run, 42, len(run.ids) - 1)
    half, layer, logits = seen.largest()
    assert logits == max(*seen.mixer.tolist(), *seen.ffn.tolist())
    assert logits == float({"mixer": seen.mixer, "ffn": seen.ffn}[half][layer])
