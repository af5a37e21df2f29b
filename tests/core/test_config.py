"""config.json, read strictly: what is refused, and which spellings mean the same."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import transformers

from core.config import Config, Rope
from core.errors import TokenwalkError, UnsupportedSetting
from core.model import Model
from core.weights import load_folder, read_config
from tests.tiny import BASE, GEMMA3, GPT2, GRANITE, LLAMA, QWEN3, QWEN35, VARIANTS


def read(settings: dict[str, Any], **changes: Any) -> Any:
    return read_config(Config({**settings, **changes}))


def without(settings: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in names}


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "gemma attention softcap": (GEMMA3, {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping = 50.0"),
    "gemma final softcap": (GEMMA3, {"final_logit_softcapping": 30.0}, "final_logit_softcapping = 30.0"),
    "llama final softcap": (LLAMA, {"final_logit_softcapping": 30.0}, "final_logit_softcapping = 30.0"),
    "gemma both ways": (GEMMA3, {"use_bidirectional_attention": True}, "use_bidirectional_attention = true"),
    "gemma activation": (GEMMA3, {"hidden_activation": "gelu"}, 'hidden_activation = "gelu"'),
    "granite experts": (GRANITE, {"num_local_experts": 8}, "num_local_experts = 8"),
    "granite experts by default": (without(GRANITE, "num_local_experts"), {}, "“num_local_experts”"),
    "granite with positions": (GRANITE, {"position_embedding_type": "rope"}, 'position_embedding_type = "rope"'),
    "granite norm": (GRANITE, {"normalization_function": "layernorm"}, 'normalization_function = "layernorm"'),
    "granite projection bias": (GRANITE, {"mamba_proj_bias": True}, "mamba_proj_bias = true"),
    "granite head width": (GRANITE, {"mamba_d_head": 8}, "mamba_d_head = 8"),
    "granite window": (GRANITE, {"sliding_window": 64}, "sliding_window = 64"),
    "qwen3 experts": (QWEN3, {"num_experts": 128}, "num_experts = 128"),
    "qwen3 window": (QWEN3, {"use_sliding_window": True, "sliding_window": 64}, "use_sliding_window = true"),
    "qwen3 window by layer": (QWEN3, {"layer_types": ["sliding_attention"] * 3}, "layer_types = "),
    "gpt2 window": (GPT2, {"sliding_window": 64}, "sliding_window = 64"),
    "gpt2 activation": (GPT2, {"activation_function": "relu"}, 'activation_function = "relu"'),
    "gpt2 unscaled": (GPT2, {"scale_attn_weights": False}, "scale_attn_weights = false"),
    "gpt2 scaled by layer": (
        GPT2,
        {"scale_attn_by_inverse_layer_idx": True},
        "scale_attn_by_inverse_layer_idx = true",
    ),
    "gpt2 cross-attention": (GPT2, {"add_cross_attention": True}, "add_cross_attention = true"),
    "llama ffn bias": (LLAMA, {"mlp_bias": True}, "mlp_bias = true"),
    "llama activation": (LLAMA, {"hidden_act": "gelu"}, 'hidden_act = "gelu"'),
    "qwen3.5 experts": (QWEN35, {"num_experts": 64}, "num_experts = 64"),
    "qwen3.5 without gate": (QWEN35, {"attn_output_gate": False}, "attn_output_gate = false"),
    "qwen3.5 state in half": (QWEN35, {"mamba_ssm_dtype": "bfloat16"}, 'mamba_ssm_dtype = "bfloat16"'),
    "qwen3.5 kind of layer": (QWEN35, {"layer_types": ["mamba"] * 4}, "layer_types = "),
    "granite kind of layer": (GRANITE, {"layer_types": ["conv"] * 4}, "layer_types = "),
    "gemma number of kinds": (GEMMA3, {"layer_types": ["full_attention"]}, "layer_types = "),
    "a setting of tomorrow": (LLAMA, {"thinking_depth": 3}, "thinking_depth = 3"),
    **{
        f"{name} attention bias": (settings, {"attention_bias": True}, "attention_bias = true")
        for name, settings in BASE.items()
    },
    **{
        f"{name} quantized": (settings, {"quantization_config": {"bits": 4}}, 'quantization_config = {"bits": 4}')
        for name, settings in BASE.items()
    },
    **{
        f"{name} rope {kind}": (settings, {key: {"rope_type": kind, "factor": 8.0}}, f"rope_type = “{kind}”")
        for name, settings in (("llama", LLAMA), ("qwen3", QWEN3), ("gemma3", GEMMA3), ("qwen3.5", QWEN35))
        for kind in ("yarn", "llama3", "dynamic", "longrope")
        for key in ("rope_scaling", "rope_parameters")
    },
    "rope yarn by its old key": (LLAMA, {"rope_scaling": {"type": "yarn", "factor": 8.0}}, "rope_type = “yarn”"),
    "gemma yarn in one kind of layer": (
        GEMMA3,
        {"rope_parameters": {"sliding_attention": {}, "full_attention": {"rope_type": "yarn"}}},
        "rope_type = “yarn”",
    ),
}


@pytest.mark.parametrize(("settings", "changes", "said"), REFUSED.values(), ids=REFUSED)
def test_a_setting_that_is_not_implemented_is_refused_by_name_before_a_weight_is_read(
    tmp_path: Path, settings: dict[str, Any], changes: dict[str, Any], said: str
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**settings, **changes}), "utf-8")
    (tmp_path / "model.safetensors").write_bytes(b"no safetensors: whoever opens this fails otherwise")
    with pytest.raises(UnsupportedSetting) as error:
        load_folder(tmp_path)
    assert said in str(error.value)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_reference_knows_every_setting_that_the_tests_use(name: str) -> None:
    settings = without(VARIANTS[name], "use_qk_norm")
    read(settings)
    config = transformers.AutoConfig.for_model(**json.loads(json.dumps(settings)))
    assert config.num_hidden_layers == len(read(settings).mixers)


SAME = {
    "off": {"use_sliding_window": False, "sliding_window": 4096, "max_window_layers": 28},
    "null": {"quantization_config": None, "rope_scaling": None, "num_experts": None},
    "false": {"attention_bias": False, "mlp_bias": False, "output_router_logits": False},
    "training": {"attention_dropout": 0.1, "initializer_range": 0.02, "use_cache": True, "pretraining_tp": 1},
    "names": {"architectures": ["X"], "_name_or_path": "x", "transformers_version": "4.40.1", "bos_token_id": 3},
    "old dtype": {"torch_dtype": "bfloat16"},
    "new dtype": {"dtype": "bfloat16"},
}


@pytest.mark.parametrize("changes", SAME.values(), ids=SAME)
def test_settings_that_change_nothing_are_let_pass(changes: dict[str, Any]) -> None:
    plain, other = read(QWEN3), read(QWEN3, **changes)
    assert other.layout == plain.layout
    assert other.rope == plain.rope


@pytest.mark.parametrize("dtype", ["torch_dtype", "dtype"])
@pytest.mark.parametrize("name", BASE)
def test_both_spellings_of_dtype_are_read_in_every_architecture(name: str, dtype: str) -> None:
    assert read(BASE[name], **{dtype: "bfloat16"}).layout == read(BASE[name]).layout


NO_ROPE = without(LLAMA, "rope_theta")
ROPES = {
    "at the top": ({"rope_theta": 500_000}, Rope(500_000.0)),
    "inside rope_parameters": ({"rope_parameters": {"rope_type": "default", "rope_theta": 500_000}}, Rope(500_000.0)),
    "absent": ({}, Rope(10_000.0)),
    "null": ({"rope_theta": None, "rope_scaling": None, "rope_parameters": None}, Rope(10_000.0)),
    "old scaling": (
        {"rope_theta": 500_000, "rope_scaling": {"rope_type": "linear", "factor": 4.0}},
        Rope(500_000.0, 4.0),
    ),
    "older scaling": ({"rope_theta": 500_000, "rope_scaling": {"type": "linear", "factor": 4}}, Rope(500_000.0, 4.0)),
    "new scaling": (
        {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 500_000}},
        Rope(500_000.0, 4.0),
    ),
    "default scaling": ({"rope_theta": 500_000, "rope_scaling": {"rope_type": "default"}}, Rope(500_000.0)),
}


@pytest.mark.parametrize(("changes", "right"), ROPES.values(), ids=ROPES)
def test_rope_theta_is_read_wherever_it_stands(changes: dict[str, Any], right: Rope) -> None:
    for settings in (NO_ROPE, without(QWEN3, "rope_theta")):
        assert read(settings, **changes).rope == right


def test_an_absent_rope_theta_is_the_references_default_in_each_architecture() -> None:
    for settings in (NO_ROPE, without(QWEN3, "rope_theta"), QWEN35):
        theirs = transformers.AutoConfig.for_model(**settings).rope_parameters
        rope = read(settings).rope
        assert rope.theta == theirs["rope_theta"]
        assert rope.partial == theirs.get("partial_rotary_factor", 1.0)
    theirs = transformers.AutoConfig.for_model(**GEMMA3).rope_parameters
    ours = read(GEMMA3).ropes
    assert ours["local attention"].theta == theirs["sliding_attention"]["rope_theta"] == 10_000.0
    assert ours["attention"].theta == theirs["full_attention"]["rope_theta"] == 1_000_000.0


GEMMA_ROPES = {
    "old names": {
        "rope_theta": 2e6,
        "rope_local_base_freq": 3e4,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
    },
    "by layer type": {
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 3e4},
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 2e6},
        }
    },
}


@pytest.mark.parametrize("changes", GEMMA_ROPES.values(), ids=GEMMA_ROPES)
def test_gemma_has_a_rope_for_each_kind_of_layer_in_both_spellings(changes: dict[str, Any]) -> None:
    ropes = read(GEMMA3, **changes).ropes
    assert ropes == {"local attention": Rope(3e4), "attention": Rope(2e6, 8.0)}
    theirs = transformers.AutoConfig.for_model(**{**GEMMA3, **json.loads(json.dumps(changes))}).rope_parameters
    assert theirs["full_attention"]["rope_theta"] == 2e6
    assert theirs["full_attention"]["factor"] == 8.0
    assert theirs["sliding_attention"]["rope_theta"] == 3e4


def test_qwen35s_share_of_turning_channels_is_read_inside_and_at_the_top() -> None:
    inside = {"rope_parameters": {"rope_theta": 1e7, "partial_rotary_factor": 0.5, "mrope_section": [11, 11, 10]}}
    assert read(QWEN35, **inside).rope == Rope(1e7, 1.0, 0.5)
    assert read(QWEN35, partial_rotary_factor=0.5, rope_theta=1e7).rope == Rope(1e7, 1.0, 0.5)
    assert read(QWEN35).rope.partial == 0.25


OLD, NEW = ["mamba", "attention", "mamba", "mamba"], ["linear_attention", "full_attention"] + ["linear_attention"] * 2


@pytest.mark.parametrize("key", ["layer_types", "layers_block_type"])
@pytest.mark.parametrize("kinds", [OLD, NEW], ids=["mamba and attention", "linear and full"])
def test_granites_kinds_of_layer_are_read_in_each_spelling(key: str, kinds: list[str]) -> None:
    model = read(without(GRANITE, "layer_types"), **{key: kinds})
    assert model.mixers == ("mamba2", "attention", "mamba2", "mamba2")


def test_granite_without_kinds_of_layer_is_all_mamba_as_in_the_reference() -> None:
    settings = without(GRANITE, "layer_types")
    assert read(settings).mixers == ("mamba2",) * 4
    assert transformers.AutoConfig.for_model(**settings).layer_types == ["linear_attention"] * 4


def test_granites_time_step_limit_is_the_configs_and_unlimited_where_it_says_nothing() -> None:
    assert read(GRANITE).dt_limit == [0.0, math.inf]
    assert read(GRANITE, time_step_limit=[0.01, 0.1]).dt_limit == [0.01, 0.1]


def test_granites_infinite_limit_is_read_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**GRANITE, "time_step_limit": [0.0, math.inf]}), "utf-8")
    assert read_config(Config.from_folder(tmp_path)).dt_limit == [0.0, math.inf]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("settings", "every", "kinds"),
    [
        (without(GEMMA3, "layer_types"), {"sliding_window_pattern": 2}, ["local attention", "attention"] * 2),
        (without(GEMMA3, "layer_types"), {}, ["local attention"] * 4),
        (QWEN35, {}, ["gated deltanet"] * 3 + ["attention"]),
        (QWEN35, {"full_attention_interval": 2}, ["gated deltanet", "attention"] * 2),
    ],
    ids=["gemma, every 2nd", "gemma, every 6th", "qwen3.5, every 4th", "qwen3.5, every 2nd"],
)
def test_a_rhythm_of_layers_is_the_references(
    settings: dict[str, Any], every: dict[str, Any], kinds: list[str]
) -> None:
    assert list(read(settings, **every).mixers) == kinds
    theirs = transformers.AutoConfig.for_model(**{**settings, **every}).layer_types
    assert [kind == "full_attention" for kind in theirs] == [kind == "attention" for kind in kinds]


def test_qwen3s_head_dim_comes_from_the_config_and_not_from_the_width() -> None:
    settings = {**QWEN3, "hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128}
    shapes = read(settings).layout.shapes
    assert shapes["layers.0.self_attn.q_proj.weight"] == (2048, 1024)
    assert shapes["layers.0.self_attn.k_proj.weight"] == (1024, 1024)
    assert shapes["layers.0.self_attn.o_proj.weight"] == (1024, 2048)
    absent = read(without(QWEN3, "head_dim"), num_attention_heads=3, num_key_value_heads=3)
    assert absent.head_dim == transformers.AutoConfig.for_model(**without(QWEN3, "head_dim")).head_dim == 128


def test_llamas_head_dim_is_the_width_over_the_heads_where_absent() -> None:
    assert read(LLAMA).head_dim == 12
    assert read(LLAMA, head_dim=20).layout.shapes["layers.0.self_attn.q_proj.weight"] == (80, 48)


@pytest.mark.parametrize("name", BASE)
def test_whether_the_head_is_tied_where_the_config_does_not_say_is_the_references_default(name: str) -> None:
    settings = without(BASE[name], "tie_word_embeddings")
    assert read(settings).tied == transformers.AutoConfig.for_model(**settings).tie_word_embeddings


def test_a_vision_language_file_holds_the_text_model_inside() -> None:
    text = {**without(QWEN35, "tie_word_embeddings"), "mtp_num_hidden_layers": 1, "mlp_only_layers": []}
    model = read({"model_type": "qwen3_5", "text_config": text, "vision_config": {"depth": 12}}, image_token_id=9)
    assert model.mixers == read(QWEN35).mixers
    assert not model.tied
    outer = read({"model_type": "qwen3_5", "tie_word_embeddings": True, "text_config": without(text, "model_type")})
    assert outer.tied


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "cannot be read"),
        ("[1, 2]", "names no model_type"),
        ('{"hidden_size": 3}', "names no model_type"),
        ('{"model_type": "bert"}', "model_type = “bert” is not implemented (only gemma3_text, gpt2, "),
        ('{"model_type": "llama"}', "no “hidden_size”, which this architecture needs"),
        (json.dumps({**LLAMA, "num_attention_heads": 0}), "cannot be read"),
        (json.dumps({**LLAMA, "num_hidden_layers": "three"}), "cannot be read"),
        (json.dumps({**GEMMA3, "rope_scaling": {"rope_type": "linear"}}), "cannot be read"),
    ],
    ids=["empty", "list", "no type", "unknown type", "no width", "no heads", "layers in words", "no factor"],
)
def test_a_config_that_is_none_is_one_sentence(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "config.json").write_text(content, "utf-8")
    with pytest.raises(TokenwalkError) as error:
        load_folder(tmp_path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_folder_without_a_config_is_no_model_folder(tmp_path: Path) -> None:
    with pytest.raises(TokenwalkError, match=r"There is no config\.json in .*: it is not a model folder"):
        load_folder(tmp_path)


def test_every_architecture_says_all_that_a_page_asks_of_it() -> None:
    for name, settings in VARIANTS.items():
        model: Model = read(settings)
        assert model.layers == len(model.mixers) == model.shape.layers, name
        assert model.shape.neurons == (model.neurons,) * model.layers
        assert model.shape.heads == tuple(model.heads(layer) for layer in range(model.layers))
        assert model.context == 512
        assert model.vocabulary == 300


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, '{"model_type": ["qwen3"]}', '{"model_type": "qwen3", "rms_norm_eps": NaN}'],
    ids=["deep", "a list for a name", "NaN"],
)
def test_a_config_of_nonsense_is_refused_in_a_sentence(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(TokenwalkError):
        Config.from_folder(tmp_path)


def test_a_limit_may_be_infinite(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "x", "time_step_limit": [0.0, Infinity]}')
    assert Config.from_folder(tmp_path).get("time_step_limit") == [0.0, float("inf")]
