"""The loader on files that are right: every spelling of a config, every tensor once, the head that a file has."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from core.catalogue import KNOWN
from core.layout import Weights, score_rows
from core.weights import from_tensors, load, load_folder
from tests import toy_repos
from tests.reference import tiny_tokenizer
from tests.toy_repos import SINGLE, TEXT, Toy, assert_equal_to_reference, embedding_of, with_head

SMOLLM2, QWEN3, GRANITE = "smollm2-135m", "qwen3-0.6b-base", "granite-4.0-h-350m-base"
GEMMA, QWEN35 = "gemma-3-270m", "qwen3.5-0.8b"
MAMBA = ["mamba", "mamba", "attention", "mamba"]
LINEAR = ["linear_attention", "linear_attention", "full_attention", "linear_attention"]
DEFAULT = {"rope_type": "default"}
NOTE = "Its file has an output matrix of its own, which is used, though the config ties it to the embedding."


def logits(toy: Toy, folder: Path) -> Tensor:
    """Ours of a toy, which are the reference's too."""
    model = load_folder(toy.write(folder))
    assert_equal_to_reference(model, folder)
    return model.run(TEXT).logits


# --- a config's spellings ------------------------------------------------------------------------------------------

# Other words for what the toy's config says already: None takes a setting away.
SAME: list[tuple[str, dict[str, Any]]] = [
    (SMOLLM2, {"torch_dtype": None, "dtype": "bfloat16"}),
    (SMOLLM2, {"rope_theta": None, "rope_parameters": {**DEFAULT, "rope_theta": 100000}}),
    (SMOLLM2, {"rope_theta": 100000.0, "rope_scaling": {"rope_type": "default"}}),
    (QWEN3, {"rope_theta": None, "rope_parameters": {**DEFAULT, "rope_theta": 1000000.0}}),
    (QWEN3, {"layer_types": ["full_attention"] * 2, "dtype": "bfloat16"}),
    (GRANITE, {"layer_types": LINEAR}),
    (GRANITE, {"layer_types": None, "layers_block_type": MAMBA}),
    (GRANITE, {"layer_types": None, "layers_block_type": LINEAR}),
    (GRANITE, {"mamba_d_head": "auto", "mamba_chunk_size": 8, "time_step_limit": [0.0, float("inf")]}),
    (GRANITE, {"rope_theta": None, "rope_parameters": {**DEFAULT, "rope_theta": 10000}}),
    (GEMMA, {"tie_word_embeddings": True}),
    (GEMMA, {"layer_types": None, "_sliding_window_pattern": None, "sliding_window_pattern": 3}),
    (
        GEMMA,
        {
            **{"rope_theta": None, "rope_local_base_freq": None},
            "rope_parameters": {
                "sliding_attention": {**DEFAULT, "rope_theta": 10000.0},
                "full_attention": {**DEFAULT, "rope_theta": 1000000.0},
            },
        },
    ),
]

# Settings that change the logits: the reference says how.
OTHER: list[tuple[str, dict[str, Any]]] = [
    (SMOLLM2, {"rope_theta": None}),  # the architecture's default
    (SMOLLM2, {"rope_scaling": {"type": "linear", "factor": 4.0}}),
    (SMOLLM2, {"rope_theta": None, "rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5000.0}}),
    (QWEN3, {"rope_theta": 5000}),
    (GRANITE, {"time_step_limit": [0.01, 0.1]}),
    (GEMMA, {"rope_local_base_freq": 500.0, "rope_theta": 2000.0}),
    (GEMMA, {"rope_theta": None, "rope_local_base_freq": None, "sliding_window": 5}),
    (GEMMA, {"layer_types": ["full_attention", "sliding_attention", "sliding_attention"]}),
    (GEMMA, {"query_pre_attn_scalar": 16}),
    ("gpt2", {"layer_norm_epsilon": 0.1}),
]


def _id(case: Any) -> str | None:
    return "+".join(case) if isinstance(case, dict) else None


@pytest.mark.parametrize(("name", "settings"), SAME, ids=_id)
def test_another_spelling_of_the_same(
    name: str, settings: dict[str, Any], toys: dict[str, Toy], tmp_path: Path
) -> None:
    spelled = logits(toys[name].with_config(**settings), tmp_path / "spelled")
    assert torch.equal(spelled, load_folder(toys[name].write(tmp_path / "plain")).run(TEXT).logits)


@pytest.mark.parametrize(("name", "settings"), OTHER, ids=_id)
def test_a_setting_that_counts(name: str, settings: dict[str, Any], toys: dict[str, Toy], tmp_path: Path) -> None:
    other = logits(toys[name].with_config(**settings), tmp_path / "other")
    plain = load_folder(toys[name].write(tmp_path / "plain")).run(TEXT).logits
    assert (other - plain).abs().max() > 1e-2


def test_a_text_model_of_its_own_is_read_as_the_nested_one(toys: dict[str, Toy], tmp_path: Path) -> None:
    """Qwen3.5 saved without its towers: the inner config, and `model.` for `model.language_model.`."""
    nested = toys[QWEN35]
    tensors = {
        name.replace("language_model.", ""): tensor
        for name, tensor in nested.tensors.items()
        if name not in nested.passengers
    }
    flat = replace(nested, config=nested.config["text_config"], tensors=tensors, shards=(SINGLE,))
    whole = load_folder(nested.write(tmp_path / "nested")).run(TEXT).logits
    assert torch.equal(logits(flat, tmp_path / "flat"), whole)


def test_prefixes_of_older_files(toys: dict[str, Toy], tmp_path: Path) -> None:
    """GPT-2 with `transformer.`, Qwen3 without `model.`."""
    gpt2, qwen3 = toys["gpt2"], toys[QWEN3]
    for toy, tensors in (
        (gpt2, {f"transformer.{name}": tensor for name, tensor in gpt2.tensors.items()}),
        (qwen3, {name.removeprefix("model."): tensor for name, tensor in qwen3.tensors.items()}),
    ):
        kind = toy.config["model_type"]
        renamed = logits(replace(toy, tensors=tensors), tmp_path / f"{kind}-renamed")
        assert torch.equal(renamed, load_folder(toy.write(tmp_path / kind)).run(TEXT).logits)


# --- tensors -------------------------------------------------------------------------------------------------------


def in_file(toy: Toy) -> dict[str, Tensor]:
    """A toy's tensors that count, by their names without prefix, in float32."""
    prefixes = ("model.language_model.", "model.")
    named = {name: tensor.float() for name, tensor in toy.tensors.items() if name not in toy.passengers}
    return {next((n.removeprefix(p) for p in prefixes if n.startswith(p)), n): t for n, t in named.items()}


@pytest.mark.parametrize("name", KNOWN)
def test_every_tensor_is_held_once_and_goes_back_as_it_came(name: str, toys: dict[str, Toy], tmp_path: Path) -> None:
    """bf16 is upcast once, exactly; what `in_file_layout` gives is the file again."""
    model = load_folder(toys[name].write(tmp_path / "file"))
    theirs, ours = in_file(toys[name]), dict(model.weights.in_file_layout(model.layout))
    assert ours.keys() == theirs.keys()
    for tensor_name, tensor in theirs.items():
        assert ours[tensor_name].dtype == torch.float32
        assert torch.equal(ours[tensor_name], tensor), tensor_name
    assert model.weights.nbytes == sum(tensor.nbytes for tensor in theirs.values())
    held = {tensor.untyped_storage().data_ptr(): tensor for tensor in model.weights.outside.values()}
    held |= {tensor.untyped_storage().data_ptr(): tensor for w in model.weights.layers for tensor in w.values()}
    pieces = [piece for w in model.weights.layers for matrix in w.matrices.values() for piece in matrix.pieces]
    assert sum(tensor.numel() * 4 for tensor in (*held.values(), *pieces)) == model.weights.nbytes
    exact = load_folder(
        tmp_path / "file", dtype=torch.float64
    ).weights  # plain: every name is a view of what is counted
    views = dict(exact.in_file_layout(model.layout)).values()
    stored = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in views}
    assert sum(stored.values()) == exact.nbytes

    saved = {tensor_name: tensor.contiguous() for tensor_name, tensor in ours.items()}
    folder = toys[name].write(tmp_path / "saved")
    for path in folder.glob("*.safetensors*"):
        path.unlink()
    save_file(saved, folder / SINGLE)
    assert torch.equal(load_folder(folder).run(TEXT).logits, model.run(TEXT).logits)


def test_matrices_lie_as_the_products_want_them(toys: dict[str, Toy], tmp_path: Path) -> None:
    model = load_folder(toys[QWEN3].write(tmp_path))
    layer, file = model.weights.layers[1], toys[QWEN3].tensors
    group = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")
    for names in (group, ("mlp.down_proj",)):
        parts = [file[f"model.layers.1.{name}.weight"].float().t() for name in names]
        assert layer.matrices[names].packed
        assert torch.equal(layer.matrices[names].plain(), torch.cat(parts, dim=1))
        for name, part in zip(names, parts, strict=True):
            assert torch.equal(layer[f"{name}.weight"], part)
    assert layer.matrices[group].widths == [64, 32, 32]
    assert model.weights.outside["embed_tokens.weight"].shape == (256, 32)
    with pytest.raises(KeyError):
        layer["mlp.sideways_proj.weight"]


def test_a_model_that_is_not_packed_gives_the_same_logits_and_lets_gradients_through(toys: dict[str, Toy]) -> None:
    toy = toys[QWEN3]
    plain = from_tensors(toy.config, toy.tensors, tiny_tokenizer(256), packed=False)
    packed = from_tensors(toy.config, toy.tensors, tiny_tokenizer(256))
    assert plain.weights.nbytes == packed.weights.nbytes
    torch.testing.assert_close(plain.run(TEXT).logits, packed.run(TEXT).logits, rtol=0, atol=1e-5)
    for parameter in plain.weights.parameters:
        parameter.requires_grad_(True)
    plain.unembed(plain.forward(torch.tensor([[1, 2, 3]]))).sum().backward()
    assert all(parameter.grad is not None for parameter in plain.weights.parameters)


@pytest.mark.parametrize("vocabulary", [3, 16, 50])
@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_product_with_a_tables_rows(vocabulary: int, rows: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(vocabulary + rows)
    h = torch.randn(1, rows, 24, generator=generator, dtype=dtype, requires_grad=True)
    table = torch.randn(vocabulary, 24, generator=generator, dtype=dtype, requires_grad=True)
    exact = h.double() @ table.double().t()
    with torch.no_grad():
        found = score_rows(h, table)
    assert found.shape == (1, rows, vocabulary)
    torch.testing.assert_close(found, exact.to(dtype))
    again, wanted = (torch.autograd.grad(y.square().sum(), (h, table)) for y in (score_rows(h, table), exact))
    torch.testing.assert_close(again, wanted, rtol=1e-5, atol=1e-4)  # of gradients in the hundreds


def test_float64_is_upcast_from_the_files_own_bits(toys: dict[str, Toy], tmp_path: Path) -> None:
    folder = toys[GRANITE].write(tmp_path)
    exact, plain = load(str(folder), dtype=torch.float64), load(str(folder))
    for (name, ours), (_, theirs) in zip(
        exact.weights.in_file_layout(exact.layout), plain.weights.in_file_layout(plain.layout), strict=True
    ):
        assert ours.dtype == torch.float64
        assert torch.equal(ours, theirs.double()), name


@pytest.mark.parametrize("name", KNOWN)
def test_nothing_holds_the_file_after_loading(name: str, toys: dict[str, Toy], tmp_path: Path) -> None:
    folder = toys[name].write(tmp_path / "a-folder-of-this-test")
    maps = Path("/proc/self/maps")
    held = torch.from_file(str(folder / "config.json"), size=4, dtype=torch.uint8)
    assert folder.name in maps.read_text()  # this is how a mapping is seen
    del held
    model = load_folder(folder)
    before = model.run(TEXT).logits
    assert folder.name not in maps.read_text()
    assert all(folder.name not in str(link.resolve()) for link in Path("/proc/self/fd").iterdir())
    for path in folder.glob("*.safetensors"):
        path.write_bytes(b"\0" * path.stat().st_size)
    assert torch.equal(model.run(TEXT).logits, before)


def test_a_tensor_is_read_once(toys: dict[str, Toy], tmp_path: Path) -> None:
    model = load_folder(toys[QWEN35].write(tmp_path))
    tensors, read = in_file(toys[QWEN35]), []

    def reader(name: str) -> Tensor:
        read.append(name)
        return tensors[name]

    Weights(model.layout, reader, torch.float32)
    assert sorted(read) == sorted(tensors)


# --- the output matrix ---------------------------------------------------------------------------------------------


def another(toy: Toy) -> Tensor:
    """A matrix of the embedding table's shape and dtype with other values."""
    table = embedding_of(toy)
    noise = torch.randn(table.shape, generator=torch.Generator().manual_seed(9))
    return (0.5 * noise).to(table.dtype)


def untied(toy: Toy) -> Toy:
    changed = toy.with_config(tie_word_embeddings=False)
    if "text_config" in changed.config:
        changed.config["text_config"]["tie_word_embeddings"] = False
    return changed


@pytest.mark.parametrize("name", KNOWN)
def test_a_tied_flag_with_another_head_is_the_references_choice(
    name: str, toys: dict[str, Toy], tmp_path: Path
) -> None:
    toy = with_head(toys[name], another(toys[name]))
    model = load_folder(toy.write(tmp_path / "with"))
    assert model.card.note == NOTE
    assert not model.tied
    assert_equal_to_reference(model, tmp_path / "with")
    plain = load_folder(toys[name].write(tmp_path / "plain"))
    assert plain.card.note == ""
    assert (model.run(TEXT).logits - plain.run(TEXT).logits).abs().max() > 0.1
    assert model.weights.nbytes == plain.weights.nbytes + 4 * embedding_of(toy).numel()


@pytest.mark.parametrize("name", KNOWN)
def test_a_tied_flag_with_the_table_again_holds_it_once(name: str, toys: dict[str, Toy], tmp_path: Path) -> None:
    model = load_folder(with_head(toys[name]).write(tmp_path / "with"))
    plain = load_folder(toys[name].write(tmp_path / "plain"))
    assert (model.tied, model.card.note) == (True, "")
    assert model.weights.nbytes == plain.weights.nbytes
    assert torch.equal(model.run(TEXT).logits, plain.run(TEXT).logits)


@pytest.mark.parametrize("name", KNOWN)
def test_a_head_of_its_own_where_the_config_says_so(name: str, toys: dict[str, Toy], tmp_path: Path) -> None:
    toy = untied(with_head(toys[name], another(toys[name])))
    model = load_folder(toy.write(tmp_path))
    assert (model.tied, model.card.note) == (False, "")
    assert_equal_to_reference(model, tmp_path)


def test_the_note_joins_what_the_card_says_already(tmp_path: Path, toys: dict[str, Toy], monkeypatch: Any) -> None:
    monkeypatch.setenv("TOKENWALK_CACHE", str(tmp_path))
    toy = with_head(toys[SMOLLM2], another(toys[SMOLLM2]))
    toy.write(tmp_path / SMOLLM2)
    assert load(SMOLLM2).card.note == f"{KNOWN[SMOLLM2].note} {NOTE}"


def test_a_folder_is_named_by_its_last_part(toys: dict[str, Toy], tmp_path: Path, monkeypatch: Any) -> None:
    toys["gpt2"].write(tmp_path / "my gpt")
    for name in (str(tmp_path / "my gpt"), f"{tmp_path}/my gpt/"):
        card = load(name).card
        assert (card.name, card.licence, card.note) == ("my gpt", "", "")
        assert card.source == f"folder: {tmp_path / 'my gpt'}"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert load("~/my gpt").card.name == "my gpt"
    monkeypatch.chdir(tmp_path / "my gpt")
    assert load(".").card.name == "my gpt"


def test_the_toys_fill_the_real_repos_layout(toys: dict[str, Toy]) -> None:
    """What the other tests rest on: which dtypes, files and extra tensors each toy has."""
    dtypes = {name: {tensor.dtype for tensor in toy.tensors.values()} for name, toy in toys.items()}
    assert dtypes.pop("gpt2") == {torch.float32}
    assert dtypes.pop(QWEN35) == {torch.bfloat16, torch.float32}
    assert set(map(frozenset, dtypes.values())) == {frozenset({torch.bfloat16})}
    files = toys[QWEN35].files()
    assert set(files) == {
        *("config.json", "tokenizer.json", "model.safetensors-00001-of-00001.safetensors"),
        toy_repos.INDEX,
    }
