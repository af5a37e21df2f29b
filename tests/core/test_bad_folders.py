"""Folders that are no model, or not quite: each is refused with one sentence that names what is wrong."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
from safetensors.torch import save_file

from core import weights
from core.errors import BadWeights, TokenwalkError, UnsupportedSetting
from core.weights import load, load_folder
from tests.reference import tiny_tokenizer
from tests.toy_repos import INDEX, SINGLE, TEXT, Toy, embedding_of, in_two_shards, smollm2, with_head

NORM, LAYER = "model.norm.weight", "model.layers.1"


def sentence(folder: Path, kind: type[TokenwalkError] = BadWeights) -> str:
    """What a person is told who asks for this folder: one sentence on one line."""
    with pytest.raises(TokenwalkError) as caught:
        load(str(folder))
    text = str(caught.value)
    assert type(caught.value) is kind, repr(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text.replace(str(folder), "FOLDER")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A toy in a folder, which loads."""
    written = smollm2().write(tmp_path / "toy")
    assert load(str(written)).layers == 3
    return written


# --- tensors -------------------------------------------------------------------------------------------------------


def written(toy: Toy, folder: Path) -> str:
    return sentence(toy.write(folder))


@pytest.mark.parametrize(
    "name", ["model.norm.weight", f"{LAYER}.self_attn.k_proj.weight", f"{LAYER}.input_layernorm.weight"]
)
def test_a_missing_tensor(name: str, tmp_path: Path) -> None:
    toy = smollm2().with_tensors({name: None})
    assert written(toy, tmp_path) == f"The weight file lacks {name.removeprefix('model.')}."


def test_a_missing_embedding_table(tmp_path: Path) -> None:
    toy = smollm2().with_tensors({"model.embed_tokens.weight": None})
    assert written(toy, tmp_path) == "The weight file has no tensor model.embed_tokens.weight."


@pytest.mark.parametrize(
    "name",
    [
        f"{LAYER}.self_attn.q_proj.bias",
        "model.layers.3.mlp.up_proj.weight",  # a layer more than the config says
        "layers.1.mlp.up_proj.weight",  # the same name without the file's prefix
        "norm.weight",
        "model.lm_head.weight",
        "score.weight",
        f"{LAYER}.mlp.up_proj.weight_scale",
    ],
)
def test_a_tensor_too_many(name: str, tmp_path: Path) -> None:
    toy = smollm2()
    twin = toy.tensors.get(f"model.{name}", torch.ones(48)).clone()
    toy = toy.with_tensors({name: twin})
    assert written(toy, tmp_path) == f"The weight file has a tensor {name}, which this architecture does not use."


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        (NORM, (47,)),
        (NORM, (48, 1)),
        (f"{LAYER}.self_attn.k_proj.weight", (48, 16)),  # turned round
        (f"{LAYER}.mlp.up_proj.weight", (95, 48)),
        ("model.embed_tokens.weight", (255, 48)),
    ],
)
def test_a_tensor_of_another_shape(name: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    right = smollm2().tensors[name].shape
    toy = smollm2().with_tensors({name: torch.zeros(shape)})
    short = name.removeprefix("model.")
    assert written(toy, tmp_path) == f"{short} is {shape} in the file; the config asks for {tuple(right)}."


def test_no_head_and_none_to_tie(tmp_path: Path) -> None:
    toy = smollm2().with_config(tie_word_embeddings=False)
    said = "The weight file lacks lm_head.weight (and the config says that it is not tied to the embedding)."
    assert written(toy, tmp_path / "false") == said
    assert written(smollm2().with_config(tie_word_embeddings=None), tmp_path / "absent") == said  # Llama's default


def test_a_tied_head_of_another_shape(tmp_path: Path) -> None:
    toy = with_head(smollm2(), torch.zeros(255, 48, dtype=torch.bfloat16))
    assert written(toy, tmp_path) == "lm_head.weight is (255, 48) in the file; the config asks for (256, 48)."


# --- files ---------------------------------------------------------------------------------------------------------


def test_no_folder_of_a_model(tmp_path: Path) -> None:
    assert sentence(tmp_path, TokenwalkError) == "There is no config.json in FOLDER: it is not a model folder."


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b"null", b"[]", b"3", b"{}", b'{"hidden_size": 8}'])
def test_a_config_that_is_none(folder: Path, body: bytes) -> None:
    (folder / "config.json").write_bytes(body)
    assert "config.json" in sentence(folder, TokenwalkError)


def test_no_tokenizer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "safe_open", lambda *_, **__: pytest.fail("a weight file was opened"))
    (folder / "tokenizer.json").unlink()
    assert sentence(folder, TokenwalkError) == "There is no tokenizer.json in FOLDER."


@pytest.mark.parametrize("body", [b"", b"{}", b"\xff\xfe", b'{"model": {"type": "?"}}'])
def test_a_tokenizer_that_cannot_be_read(folder: Path, body: bytes) -> None:
    (folder / "tokenizer.json").write_bytes(body)
    assert sentence(folder, TokenwalkError).startswith("FOLDER/tokenizer.json cannot be read: ")


def test_no_weights(folder: Path) -> None:
    (folder / SINGLE).unlink()
    assert sentence(folder) == f"There is no {SINGLE} and no {INDEX} in FOLDER."


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.pth", "last.ckpt"])
def test_pickles_only(folder: Path, name: str) -> None:
    """The file would write another if it were opened."""
    trace = folder / "trace"
    torch.save({"a": _Trap(trace)}, folder / name)
    (folder / SINGLE).unlink()
    assert sentence(folder) == (
        f"FOLDER has its weights as a pickle ({name}), which can run code when opened: only safetensors are read."
    )
    assert not trace.exists()
    torch.load(folder / name, weights_only=False)
    assert trace.exists()  # the trap is one


class _Trap:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.trace,)


def _cut(body: bytes) -> bytes:
    return body[: len(body) // 2]


def _header_only(body: bytes) -> bytes:
    return body[: 8 + int.from_bytes(body[:8], "little")]


@pytest.mark.parametrize(
    "damage",
    [
        _cut,
        _header_only,
        lambda body: body[:-1],
        lambda body: body[:5],
        lambda body: b"",
        lambda body: b"\xff" * 8 + body[8:],
        lambda body: body[:8] + b"?" + body[9:],
        lambda body: body + b"more",
        lambda body: b"<!DOCTYPE html><html>Sign in</html>",
    ],
)
def test_a_damaged_weight_file(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    path = folder / SINGLE
    path.write_bytes(damage(path.read_bytes()))
    assert sentence(folder).startswith("The weight file in FOLDER is damaged: ")


def test_a_pointer_in_the_weights_place(folder: Path) -> None:
    """What a clone without git-lfs leaves."""
    (folder / SINGLE).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:80521b40\nsize 269060552\n")
    assert sentence(folder).startswith("The weight file in FOLDER is damaged: ")


def test_a_missing_shard(tmp_path: Path) -> None:
    toy = in_two_shards(smollm2())
    (toy.write(tmp_path) / toy.shards[1]).unlink()
    assert sentence(tmp_path) == f"{INDEX} names {toy.shards[1]}, which is not in FOLDER."


def test_one_tensor_in_two_shards(tmp_path: Path) -> None:
    toy = in_two_shards(smollm2())
    toy.write(tmp_path)
    for shard in toy.shards:
        save_file({NORM: toy.tensors[NORM]}, tmp_path / shard)
    assert sentence(tmp_path) == f"Two of the weight files have a tensor {NORM}."


@pytest.mark.parametrize("listed", ["../x.safetensors", "{}/../x.safetensors", "a/x.safetensors", "x.bin", 3, None])
def test_an_index_that_points_elsewhere(folder: Path, listed: Any) -> None:
    """It is refused though what it points at is there and is a model's weight file."""
    body = (folder / SINGLE).read_bytes()
    (folder / SINGLE).unlink()
    (folder / "a").mkdir()
    for place in (folder.parent, folder / "a"):
        (place / "x.safetensors").write_bytes(body)
    (folder / "x.bin").write_bytes(body)
    name = listed.format(folder) if isinstance(listed, str) else listed
    (folder / INDEX).write_text(json.dumps({"weight_map": {NORM: name}}))
    assert sentence(folder) == f"{INDEX} names files that are no safetensors beside it."


@pytest.mark.parametrize("body", ["", "{", "[]", "{}", '{"weight_map": 3}', '{"weight_map": {"a": ["b"]}}'])
def test_an_index_that_cannot_be_read(folder: Path, body: str) -> None:
    (folder / SINGLE).unlink()
    (folder / INDEX).write_text(body)
    assert sentence(folder) == f"{INDEX} cannot be read as an index of shards."


# --- settings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"rope_scaling": {"rope_type": "llama3", "factor": 32.0}}, "rope_type = “llama3”"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}}, "rope_type = “yarn”"),
        ({"mlp_bias": True}, "mlp_bias = true"),
        ({"hidden_act": "gelu"}, 'hidden_act = "gelu"'),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"model_type": "mixtral"}, "model_type = “mixtral”"),
        ({"final_logit_softcapping": 30.0}, "final_logit_softcapping = 30.0"),
        ({"num_experts": 8}, "num_experts = 8"),
    ],
)
def test_an_unsupported_setting_is_refused_before_a_weight_is_read(
    settings: dict[str, Any], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weights, "safe_open", lambda *_, **__: pytest.fail("a weight file was opened"))
    folder = smollm2().with_config(**settings).write(tmp_path)
    assert named in sentence(folder, UnsupportedSetting)


@pytest.mark.parametrize(
    "settings",
    [
        {"hidden_size": "wide"},
        {"num_attention_heads": 0},
        {"num_hidden_layers": [3]},
        {"rope_theta": "much"},
        {"rope_parameters": [1]},
        {"rope_scaling": {"rope_type": "linear"}},
    ],
)
def test_a_setting_that_makes_no_sense(settings: dict[str, Any], tmp_path: Path) -> None:
    toy = smollm2()
    toy = replace(toy, config={**toy.config, "head_dim": None, **settings})
    assert "llama model cannot be read" in sentence(toy.write(tmp_path), TokenwalkError)


# --- the tokenizer and the table -----------------------------------------------------------------------------------


def larger(entries: int, added: int) -> tokenizers.Tokenizer:
    """A tokenizer of so many entries, and so many added tokens after them."""
    made = tokenizers.Tokenizer.from_str(tiny_tokenizer(256).fast.to_str())
    described = json.loads(made.to_str())
    described["model"]["vocab"] |= {f"ab{i}": i for i in range(256, entries)}
    made = tokenizers.Tokenizer.from_str(json.dumps(described))
    made.add_special_tokens([f"<added {i}>" for i in range(added)])
    return made


def test_a_tokenizer_of_another_model(folder: Path) -> None:
    larger(300, 1).save(str(folder / "tokenizer.json"))
    assert sentence(folder) == ("The tokenizer has 301 entries and the embedding 256 rows: they are not of one model.")


def test_an_added_token_without_a_row_is_plain_text(folder: Path) -> None:
    """Gemma 3's <image_soft_token>: one past the last row of the text-only models, which load and run all the same."""
    before = load_folder(folder).run(TEXT)
    larger(256, 1).save(str(folder / "tokenizer.json"))
    model = load_folder(folder)
    assert model.tokenizer.size == 256
    assert torch.equal(model.run(TEXT).logits, before.logits)
    run = model.run("a<added 0>b")
    assert len(run.ids) == len("a<added 0>b")
    assert max(run.ids) < 256
    assert not any(token.added for token in run.tokens)


def test_an_added_token_with_a_row_stays_one(tmp_path: Path) -> None:
    toy = smollm2()
    table = torch.cat([embedding_of(toy), torch.full((2, 48), 0.5, dtype=torch.bfloat16)])
    toy = toy.with_config(vocab_size=258).with_tensors({"model.embed_tokens.weight": table})
    folder = toy.write(tmp_path)
    larger(256, 3).save(str(folder / "tokenizer.json"))
    model = load_folder(folder)
    assert model.run("<added 0><added 1>").ids == [256, 257]
    assert len(model.run("<added 2>").ids) == len("<added 2>")
