"""What a run records and switches off, on every architecture."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

import pytest
import torch
from torch import Tensor

from core.errors import TokenwalkError
from core.model import Model
from core.run import Run
from core.taps import PLAIN, Recorder, Request, SwitchOff, Tap, parse_request
from tests.reference import ours
from tests.tiny import BASE, fresh, tiny

TEXT = "Alice gave Bob a book, and later"
MAPS = ("attention.pattern", "mamba2.map", "deltanet.map")
WIDE = ["gpt2", "llama", "qwen3", "granite, two groups", "gemma3", "qwen3.5, two value heads a key"]


def near(value: Tensor, right: Tensor, relative: float = 1e-5) -> None:
    assert value.shape == right.shape
    assert (value - right).abs().max() <= relative * right.abs().max()


def all_of(run: Run) -> dict[str, list[Tensor]]:
    return {site: list(found.values()) for site, found in run.values.items()} | {
        site: [value] for site, value in run.outside.items()
    }


# --- recording --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WIDE)
def test_recording_leaves_the_logits_bit_identical(name: str) -> None:
    model = tiny(name).model
    plain = model.run(TEXT).logits
    for site in model.sites:
        assert torch.equal(model.run(TEXT, record=[site.name]).logits, plain), site.name
    assert torch.equal(model.run(TEXT, record=[site.name for site in model.sites]).logits, plain)


@pytest.mark.parametrize("name", WIDE)
def test_recording_a_long_texts_attention_maps_changes_the_logits_by_rounding_only(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.mixers.FUSED_FROM", 0)
    model = tiny(name).model
    near(model.run(TEXT, record=["attention.pattern"]).logits, model.run(TEXT).logits)


@pytest.mark.parametrize("name", WIDE)
def test_every_site_of_the_catalogue_is_reached_and_has_its_axes(name: str) -> None:
    model = tiny(name).model
    run = model.run(TEXT, record=[site.name for site in model.sites])
    assert sorted(all_of(run)) == sorted(site.name for site in model.sites)
    for site in model.sites:
        layers = [i for i, kind in enumerate(model.mixers) if not site.kinds or kind in site.kinds]
        if site.per_layer:
            assert sorted(run.values[site.name]) == layers, site.name
            values = list(run.values[site.name].values())
        else:
            values = [run.outside[site.name]]
        assert {value.ndim for value in values} == {len(site.axes)}, site.name
        assert {type(value) for value in values} == {Tensor}


@pytest.mark.parametrize("name", WIDE)
def test_the_sites_that_can_be_switched_off_are_those_that_a_switch_changes(name: str) -> None:
    model = tiny(name).model
    every = [f"{word}:*" for word in ("mixer", "ffn")]
    parts = [f"{word}:{layer}.0" for word in ("head", "neuron") for layer in range(model.layers)]
    switch = SwitchOff([model.switches([*every, *parts])]).at(0)
    value = torch.ones(1, 2, 3, 4)
    acts = {site.name for site in model.sites if not torch.equal(switch(site.name, value), value)}
    assert acts == {site.name for site in model.sites if site.switchable}


class Names(Tap):
    """Writes down every name that a block hands over, in order."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def wants(self, site: str) -> bool:
        return True

    def heads(self, site: str, count: int) -> list[int]:
        return list(range(count))

    def __call__(self, site: str, value: Tensor) -> Tensor:
        self.seen.append(site)
        return value


@pytest.mark.parametrize("name", WIDE)
def test_no_name_is_used_that_is_not_in_the_catalogue_and_the_order_is_that_of_execution(name: str) -> None:
    model = tiny(name).model
    tap = Names()
    model.unembed(model.forward(torch.tensor([[1, 2, 3]]), tap), tap)
    catalogue = [site.name for site in model.sites]
    assert set(tap.seen) == set(catalogue)
    for kind in dict.fromkeys(model.mixers):
        block = Names()
        model.block(model.mixers.index(kind), model.embed(torch.tensor([[1, 2, 3]])), block)
        positions = [catalogue.index(site) for site in block.seen]
        assert positions == sorted(positions)


@pytest.mark.parametrize("name", BASE)
def test_a_plain_run_builds_no_map(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny(name).model

    def refuse(*_: Any, **__: Any) -> Tensor:
        raise AssertionError("a map that nobody asked for")

    for place in ("core.mixers.empty_pattern", "core.models.granite.mamba2_map"):
        monkeypatch.setattr(place, refuse)
    monkeypatch.setattr("core.models.qwen3_5.gated_delta_map", refuse)
    others = [site.name for site in model.sites if site.name not in MAPS]
    assert model.run(TEXT, record=others).logits.isfinite().all()
    for site in {each.name for each in model.sites} & set(MAPS):
        with pytest.raises(AssertionError, match="nobody asked for"):
            model.run(TEXT, record=[site])


def test_only_what_was_asked_for_is_kept() -> None:
    model = tiny("granite").model
    run = model.run(TEXT, record=["ffn.neurons:0-1", "mamba2.map:2", "logits"])
    assert {site: sorted(found) for site, found in run.values.items()} == {"ffn.neurons": [0, 1], "mamba2.map": [2]}
    assert list(run.outside) == ["logits"]
    assert model.run(TEXT).values == {}


def test_a_layer_without_the_site_gives_nothing_and_no_error() -> None:
    run = tiny("granite").model.run(TEXT, record=["attention.pattern:0-2"])
    assert sorted(run.values["attention.pattern"]) == [1]


@pytest.mark.parametrize(
    ("name", "site", "layer"),
    [("llama", "attention.pattern", 1), ("granite, two groups", "mamba2.map", 2), ("qwen3.5", "deltanet.map", 0)],
    ids=["attention", "mamba2", "deltanet"],
)
def test_single_heads_of_a_map_are_those_of_the_whole_map(name: str, site: str, layer: int) -> None:
    model = tiny(name).model
    whole = model.run(TEXT, record=[f"{site}:{layer}"]).values[site][layer]
    one = model.run(TEXT, record=[f"{site}:{layer}.1"]).values[site][layer]
    assert torch.equal(one, whole[1:2])
    two = model.run(TEXT, record=[f"{site}:{layer}.1", f"{site}:{layer}.0"]).values[site][layer]
    assert torch.equal(two, whole[:2])
    both = model.run(TEXT, record=[f"{site}:{layer}.1", f"{site}:{layer}"]).values[site]
    assert torch.equal(both[layer], whole)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("attention.patern", "This model has no site “attention.patern”; it has embedding, residual.before, "),
        ("mamba2.map:0", "This model has no site “mamba2.map”"),
        ("logits:3", "“logits:3”: logits stands outside the layers, so it takes no layer."),
        ("attention.pattern:9", "“attention.pattern:9” leaves the model: its layers are 0 to 2."),
        ("attention.pattern:x", "“attention.pattern:x” names no layers"),
        ("attention.pattern:1.x", "“attention.pattern:1.x”: attention.pattern cannot be picked by head “x”."),
        ("residual.after:1.0", "“residual.after:1.0”: residual.after cannot be picked by head “0”."),
        ("attention.pattern:1.7", "attention.pattern of layer 1 has heads 0 to 3, not 7."),
    ],
)
def test_a_request_that_cannot_be_met_says_why(spec: str, said: str) -> None:
    with pytest.raises(TokenwalkError) as error:
        tiny("llama").model.run(TEXT, record=[spec])
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("spec", "right"),
    [
        ("attention.pattern", Request("attention.pattern")),
        ("attention.pattern:1", Request("attention.pattern", frozenset({1}))),
        ("attention.pattern:1-", Request("attention.pattern", frozenset({1, 2}))),
        ("attention.pattern:*", Request("attention.pattern", frozenset({0, 1, 2}))),
        ("attention.pattern:2.3", Request("attention.pattern", frozenset({2}), 3)),
    ],
)
def test_requests_are_read(spec: str, right: Request) -> None:
    assert parse_request(spec, tiny("llama").model.sites, 3) == right


def test_the_plain_tap_gives_everything_back_and_wants_nothing() -> None:
    value = torch.ones(1)
    assert PLAIN("mixer.write", value) is value
    assert PLAIN.at(3) is PLAIN
    assert not PLAIN.wants("logits")
    assert PLAIN.heads("attention.pattern", 4) == []


# --- what is recorded hangs together ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize("off", [[], ["mixer:1", "ffn:2"]], ids=["nothing off", "parts off"])
def test_the_stream_is_the_sum_of_what_is_written_to_it(name: str, off: list[str]) -> None:
    model = tiny(name).model
    every = [site.name for site in model.sites if site.name not in MAPS]
    run = model.run(TEXT, record=every, off=off)
    v = run.values
    x = run.outside["embedding"]
    if "embedding.token" in run.outside:
        assert torch.equal(run.outside["embedding.token"] + run.outside["embedding.position"], x)
    for layer in range(model.layers):
        assert torch.equal(v["residual.before"][layer], x)
        mixer, ffn = v["mixer.write"][layer], v["ffn.write"][layer]
        if "mixer.bias" in v:
            mixer, ffn = mixer + v["mixer.bias"][layer], ffn + v["ffn.bias"][layer]
        assert torch.equal(v["residual.between"][layer], x + mixer)
        x = v["residual.between"][layer] + ffn
        assert torch.equal(v["residual.after"][layer], x)
    assert torch.equal(run.stream, x)
    near(run.outside["logits"], run.logits, 1e-6)
    near(model.unembed(x[None])[0], run.logits, 1e-6)


@pytest.mark.parametrize("name", WIDE)
def test_heads_and_neurons_make_the_writes_by_the_output_projections(name: str) -> None:
    model = tiny(name).model
    run = model.run(TEXT, record=["mixer.heads", "mixer.write", "ffn.neurons", "ffn.write"])
    scale = getattr(model, "residual_multiplier", 1.0)
    for layer, w in enumerate(model.weights.layers):
        if name == "gemma3":
            continue  # a norm stands between
        out, down = (w[matrix] for matrix in model.output_matrices(layer))
        near(run.values["mixer.heads"][layer].flatten(1) @ out * scale, run.values["mixer.write"][layer])
        near(run.values["ffn.neurons"][layer] @ down * scale, run.values["ffn.write"][layer])


# --- switching off ----------------------------------------------------------------------------------------------------

OUT = {  # (layer, head) of a head to switch off, and the matrix that its columns go into
    "gpt2": (1, 2, "transformer.h.1.attn.c_proj.weight", 0),
    "llama": (1, 3, "model.layers.1.self_attn.o_proj.weight", 1),
    "qwen3": (0, 0, "model.layers.0.self_attn.o_proj.weight", 1),
    "granite": (2, 5, "model.layers.2.mamba.out_proj.weight", 1),
    "granite, attention first": (0, 1, "model.layers.0.self_attn.o_proj.weight", 1),
    "gemma3": (2, 3, "model.layers.2.self_attn.o_proj.weight", 1),
    "qwen3.5": (1, 1, "model.layers.1.linear_attn.out_proj.weight", 1),
    "qwen3.5, one kv head": (3, 2, "model.layers.3.self_attn.o_proj.weight", 1),
}


def with_zeros(name: str, matrix: str, axis: int, begin: int, end: int) -> Model:
    """Our model of the same weights, with some of the inputs of one matrix zeroed in the file."""
    each = fresh(name)
    tensor = each.reference.state_dict()[matrix]
    tensor.narrow(axis, begin, end - begin).zero_()
    return ours(each.reference, each.settings)


@pytest.mark.parametrize("name", OUT)
def test_a_switched_off_head_is_its_rows_of_the_output_projections_input_at_zero(name: str) -> None:
    layer, head, matrix, axis = OUT[name]
    model = tiny(name).model
    run = model.run(TEXT, record=[f"mixer.heads:{layer}"], off=[f"head:{layer}.{head}"])
    z = run.values["mixer.heads"][layer]
    assert not z[:, head].any()
    assert (z.abs().amax((0, 2)) > 0).sum() == model.heads(layer) - 1
    channels = z.shape[-1]
    zeroed = with_zeros(name, matrix, axis, head * channels, (head + 1) * channels).run(TEXT)
    near(run.logits, zeroed.logits)
    assert (run.logits - model.run(TEXT).logits).abs().max() > 1e-3 * zeroed.logits.abs().max()


NEURON = {
    "gpt2": ("transformer.h.1.mlp.c_proj.weight", 0),
    "llama": ("model.layers.1.mlp.down_proj.weight", 1),
    "granite": ("model.layers.1.shared_mlp.output_linear.weight", 1),
    "gemma3": ("model.layers.1.mlp.down_proj.weight", 1),
    "qwen3.5": ("model.layers.1.mlp.down_proj.weight", 1),
}


@pytest.mark.parametrize("name", NEURON)
def test_a_switched_off_neuron_is_its_row_of_the_down_projection_at_zero(name: str) -> None:
    model = tiny(name).model
    run = model.run(TEXT, record=["ffn.neurons:1"], off=["neuron:1.7"])
    a, before = run.values["ffn.neurons"][1], model.run(TEXT, record=["ffn.neurons:1"]).values["ffn.neurons"][1]
    assert not a[:, 7].any()
    assert torch.equal(a[:, :7], before[:, :7])
    near(run.logits, with_zeros(name, *NEURON[name], 7, 8).run(TEXT).logits)
    assert not torch.equal(run.logits, model.run(TEXT).logits)


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize(("part", "spec"), [("mixer", "mixer:1"), ("ffn", "ffn:1")])
def test_a_switched_off_part_writes_zero(name: str, part: str, spec: str) -> None:
    model = tiny(name).model
    plain = model.run(TEXT, record=[f"{part}.write"])
    run = model.run(TEXT, record=[f"{part}.write"], off=[spec])
    writes = run.values[f"{part}.write"]
    assert not writes[1].any()
    assert torch.equal(writes[0], plain.values[f"{part}.write"][0])
    assert (writes[2] - plain.values[f"{part}.write"][2]).abs().max() > 1e-3


def test_gpt2_keeps_its_output_biases_when_a_part_is_off() -> None:
    model = tiny("gpt2").model
    names = ["residual.before:1", "residual.between:1", "residual.after:1", "mixer.bias:1", "ffn.bias:1"]
    run = model.run(TEXT, record=names, off=["mixer:1", "ffn:1"])
    before, between, after, mixer_bias, ffn_bias = (run.values[name.partition(":")[0]][1] for name in names)
    assert torch.equal(mixer_bias, model.weights.layers[1]["attn.c_proj.bias"])
    assert mixer_bias.abs().max() > 0.1
    assert torch.equal(between, before + mixer_bias)
    assert torch.equal(after, between + ffn_bias)


def test_all_heads_off_is_the_mixer_off() -> None:
    model = tiny("llama").model
    heads = model.run(TEXT, off=[f"head:1.{head}" for head in range(4)])
    assert torch.equal(heads.logits, model.run(TEXT, off=["mixer:1"]).logits)


@pytest.mark.parametrize("name", WIDE)
def test_a_run_a_run_with_a_switch_and_a_run_again_the_third_is_the_first_bit_for_bit(name: str) -> None:
    model = tiny(name).model
    every = [site.name for site in model.sites]
    first = model.run(TEXT, record=every)
    model.run(TEXT, record=every, off=["mixer:0-1", "ffn:*", "head:2.1", "neuron:2.3"])
    third = model.run(TEXT, record=every)
    assert torch.equal(third.logits, first.logits)
    for site, values in all_of(first).items():
        for a, b in zip(values, all_of(third)[site], strict=True):
            assert torch.equal(a, b), site


@pytest.mark.parametrize("name", WIDE)
def test_looking_into_a_layer_once_more_ends_at_the_last_site_asked_for(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny(name).model
    run = model.run(TEXT, record=["residual.before"])
    for layer in range(model.layers):
        whole = run.again(layer, *[site.name for site in model.sites if site.per_layer])
        matrices = model.weights.layers[layer].matrices
        with monkeypatch.context() as without:
            for names in [names for names in matrices if "mlp." in names[0]]:
                without.delitem(matrices, names)
            for site in list(whole)[: list(whole).index("mixer.write") + 1]:
                assert torch.equal(run.again(layer, site)[site], whole[site]), site
            with pytest.raises(KeyError):
                run.again(layer, "residual.after")


@pytest.mark.parametrize("name", ["llama", "granite", "qwen3.5"])
def test_two_visitors_with_different_switches_at_once_each_see_their_own(name: str) -> None:
    model = tiny(name).model
    choices: list[list[str]] = [[], ["mixer:2"], ["ffn:0"], ["head:1.1"]]
    alone = [model.run(TEXT, record=["mixer.write"], off=off) for off in choices]
    barrier = Barrier(len(choices))

    def visit(off: list[str]) -> list[Run]:
        barrier.wait()
        return [model.run(TEXT, record=["mixer.write"], off=off) for _ in range(10)]

    with ThreadPoolExecutor(len(choices)) as pool:
        for runs, right in zip(pool.map(visit, choices), alone, strict=True):
            for run in runs:
                near(run.logits, right.logits, 1e-6)
                assert [not write.any() for write in run.values["mixer.write"].values()] == [
                    not write.any() for write in right.values["mixer.write"].values()
                ]
    for right, plain in zip(alone[1:], alone, strict=False):
        assert not torch.equal(right.logits, plain.logits)


def test_each_row_of_a_batch_has_its_own_switches() -> None:
    model = tiny("qwen3").model
    ids = torch.tensor([model.run(TEXT).ids] * 3)
    rows = [model.switches(off) for off in ([], ["head:1.2"], ["mixer:0", "neuron:1.5"])]
    together = model.forward(ids, SwitchOff(rows))
    for row, off in enumerate(([], ["head:1.2"], ["mixer:0", "neuron:1.5"])):
        near(together[row], model.run(TEXT, off=off).stream)


def test_a_recorder_of_one_layer_shares_what_it_keeps() -> None:
    recorder = Recorder([Request("mixer.write", frozenset({1}))])
    recorder.at(1)("mixer.write", torch.ones(1))
    recorder.at(0)("mixer.write", torch.zeros(1))
    assert {site: sorted(found) for site, found in recorder.values.items()} == {"mixer.write": [1]}


@pytest.mark.parametrize("spec", ["mixer.heads:0.1", "attention.query:0.0", "attention.pattern:0." + "9" * 5000])
def test_only_maps_are_picked_by_head(spec: str) -> None:
    with pytest.raises(TokenwalkError, match="cannot be picked by head"):
        tiny("llama").model.run("hi", record=[spec])
