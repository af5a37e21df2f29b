"""What the pages say to every kind of input."""

import re
from pathlib import Path

import pytest

from core.catalogue import KNOWN
from core.model import Model
from pages.frame.state import PROMPT
from pages.frame.walk import STEPS
from tests import toy_repos
from tests.hub_server import Hub
from tests.pages.walking import plain, walk

PAGES = [step.path for step in STEPS]
TO = 17  # the last token of the sentence


@pytest.fixture(autouse=True)
def _packaged_model(smollm2_path: Path) -> None:
    """SmolLM2 lies where the app looks for it."""


@pytest.mark.parametrize("page", PAGES)
def test_what_is_off_is_named_on_every_page(page: str) -> None:
    warnings = [element.value for element in walk(page, off="mixer:3,mamba2:0").warning]
    assert len(warnings) == 1
    assert warnings[0].startswith("`mixer:3` is switched off in SmolLM2 135M.")
    assert "switches nothing off" in warnings[0]


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(
    "text",
    [
        " ",
        "a",
        "the the the the",
        "line one\nline two\t  x",
        "🤗",
        "</script><b>x $a$ and $b$ *a* _b_ [c](d) `e` a<b<c",
        "<|endoftext|>",
        "在一个没有空格的句子里模型看到的是一个一个的词元而不是字母所以长度的限制应该数词元而不是数单词或者空格",
    ],
    ids=["space", "letter", "equal", "lines", "emoji", "markup", "special", "chinese"],
)
def test_every_page_takes_every_text(page: str, text: str) -> None:
    at = walk(page, text=text)
    assert not at.error
    said = plain(at) or [element.value for element in at.info]
    assert said[0].startswith(("SmolLM2 135M", "In ", "Before layer ", "None of the article", "Choose a second"))


@pytest.mark.parametrize("page", PAGES)
def test_no_text_gets_one_sentence(page: str) -> None:
    at = walk(page, text="")
    assert [element.value for element in at.info] == ["There is no text yet: type a sentence in the sidebar."]
    assert not at.markdown


def test_a_text_that_is_too_long_gets_one_sentence() -> None:
    at = walk("start")
    at.text_area[0].set_value("word " * 5000).run()
    assert [element.value for element in at.warning] == ["The text is 5,001 tokens long; this app walks up to 2,048\\."]
    assert not at.exception


def test_start_over_brings_everything_back() -> None:
    at = walk("start", text="The capital of France is", off="mixer:3", target=" Paris", layer="2")
    at.sidebar.button[0].click().run()
    assert plain(at)[0].startswith("SmolLM2 135M goes on with “␣Alice” at 81 %")
    assert not at.warning


def test_a_new_sentence_moves_the_focus_to_its_end() -> None:
    at = walk("start", focus="2")
    assert at.sidebar.selectbox[0].value == 2
    at.text_area[0].set_value("The capital of France is").run()
    assert at.sidebar.selectbox[0].value == 4
    assert plain(at)[0].startswith("SmolLM2 135M goes on with “␣Paris” at 77 %")


def test_the_view_is_in_the_url() -> None:
    at = walk("mixing", layer="22", head="7", focus="9", off="ffn:1", target=" Bob")
    assert {name: at.query_params[name] for name in ("layer", "head", "focus", "off", "target", "text")} == {
        "layer": "22",
        "head": "7",
        "focus": "9",
        "off": "ffn:1",
        "target": " Bob",
        "text": PROMPT,
    }


def test_the_same_text_after_a_switch_on_and_off_is_the_same(smollm2: Model) -> None:
    at = walk("start")
    before = plain(at)[0]
    at.sidebar.multiselect[1].set_value(["mixer:0"]).run()
    between = plain(at)[0]
    at.sidebar.multiselect[1].set_value([]).run()
    assert between != before
    assert plain(at)[0] == before


def test_a_hub_out_of_reach_costs_one_sentence_and_the_other_models_go_on(
    no_hub: str, smollm2_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKENWALK_CACHE", str(smollm2_path.parent))
    at = walk("start", models="smollm2-135m,gpt2")
    assert [re.sub(r"\\(.)", r"\1", element.value) for element in at.error] == [
        "GPT-2 124M is not here: The model hub can't be reached, and openai-community/gpt2 has not been downloaded "
        "before."
    ]
    assert plain(at)[0].startswith("SmolLM2 135M goes on with “␣Alice” at 81 %")


def test_a_gated_model_says_what_to_do(hub: Hub, smollm2_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENWALK_CACHE", str(smollm2_path.parent))
    known = KNOWN["gemma-3-270m"]
    hub.repos[known.repo] = toy_repos.gemma3().repo(known.revision or "", gated=True)
    at = walk("start", models="smollm2-135m,gemma-3-270m")
    assert "accept its terms" in at.error[0].value
    assert "HF\\_TOKEN" in at.error[0].value
    assert plain(at)[0].startswith("SmolLM2 135M goes on with")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("off", ["mixer:*,ffn:*", "attention:*"])
def test_every_page_stands_with_everything_off(page: str, off: str) -> None:
    at = walk(page, models="specimen-qwen3", off=off)
    assert not at.error


def test_a_byte_token_can_be_the_target() -> None:
    at = walk("logit_lens", models="specimen-qwen3", text="🤗")
    offered = at.sidebar.selectbox[1].options
    chosen = next(option for option in offered if "(id:" in option)
    at.sidebar.selectbox[1].set_value(chosen.rpartition("(")[2].rstrip(")")).run()
    piece = chosen.partition(" (")[0]
    assert f"“{piece}”" in plain(at)[0]
    assert "␣" not in piece


def test_a_neuron_that_is_off_can_be_switched_on_again() -> None:
    at = walk("ffn", models="specimen-qwen3", off="neuron:5.47")
    box = next(each for each in at.selectbox if each.label == "A neuron, layer.neuron")
    box.set_value("5.47").run()
    button = next(each for each in at.button if each.label == "Switch it on again")
    button.click().run()
    assert not at.warning


def test_distance_keeps_what_is_off() -> None:
    plainly, off = (plain(walk("distance", models="specimen-granite", off=off))[0] for off in ("", "mixer:*"))
    assert plainly != off


def test_a_long_sentence_says_that_its_link_leaves_it_out() -> None:
    at = walk("start", models="specimen-qwen3")
    at.text_area[0].set_value("🙂 " * 600).run()
    assert "text" not in at.query_params
    assert any("too long for a link" in caption.value for caption in at.sidebar.caption)
