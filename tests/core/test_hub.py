"""The hub, when it serves and when it fails: bytes, resumption, refusals. Each failure is one sentence."""

import json
import socket
import time
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from huggingface_hub.utils import _detect_agent

from core import catalogue
from core import hub as core_hub
from core.errors import BadWeights, TokenwalkError, UnsupportedSetting
from core.weights import load
from tests.fixtures_hub import COMMIT, REPO, cached, told
from tests.hub_server import TOKEN, Fault, Hub
from tests.toy_repos import INDEX, SINGLE, TEXT, Toy, in_two_shards

# --- when all goes well --------------------------------------------------------------------------------------------


def test_progress_grows_in_bytes_and_ends_at_the_total(hub: Hub, tiny_repo: Toy, small_pieces: int) -> None:
    heard: list[tuple[int, int]] = []
    load(REPO, progress=lambda done, total: heard.append((done, total)))
    sizes = [len(body) for body in hub.repos[REPO].files.values()]
    assert heard == sorted(heard)
    assert heard[-1] == (sum(sizes), sum(sizes))
    assert len(heard) >= sum(sizes) // small_pieces
    assert all(0 <= done <= total for done, total in heard)
    assert any(0 < done < total for done, total in heard)

    heard.clear()
    load(REPO, progress=lambda done, total: heard.append((done, total)))
    assert heard == []  # nothing is fetched that is there


def test_a_slow_hub_is_heard_of_while_it_sends(hub: Hub, tiny_repo: Toy, small_pieces: int) -> None:
    size = len(hub.repos[REPO].files[SINGLE])
    hub.faults[SINGLE] = Fault(pause=0.05, piece=-(-size // 6))
    times: list[float] = []
    load(REPO, progress=lambda done, total: times.append(time.monotonic()))
    assert times[-1] - times[0] > 0.2


def test_files_come_from_one_commit_though_the_branch_moves(hub: Hub, tiny_repo: Toy, right: torch.Tensor) -> None:
    model = load(REPO)
    by_file = {request.file: request.revision for request in hub.requests}
    assert by_file == {"config.json": "main", "tokenizer.json": COMMIT, SINGLE: COMMIT}
    assert model.card.source == f"hub: {REPO} at {COMMIT[:12]}"
    assert torch.equal(model.run(TEXT).logits, right)


def test_the_newest_revision_is_asked_for_each_time(hub: Hub, tiny_repo: Toy) -> None:
    load(REPO)
    hub.repos[REPO] = tiny_repo.with_config(rope_theta=500).repo("d" * 40)
    assert load(REPO).card.source == f"hub: {REPO} at {'d' * 12}"


def test_a_pinned_model_in_the_cache_needs_no_request(
    hub: Hub, toys: dict[str, Toy], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = catalogue.KNOWN["gpt2"]
    hub.repos[known.repo] = toys["gpt2"].repo(str(known.revision))
    first = load("gpt2").run(TEXT[:20]).logits
    assert hub.probes == 1
    hub.requests.clear()
    hub.others.clear()
    monkeypatch.setattr(_detect_agent, "_registry", None)  # as in a new process, whose first download asks for one
    assert torch.equal(load("gpt2").run(TEXT[:20]).logits, first)
    assert (hub.requests, hub.others, hub.probes) == ([], [], 1)


# --- what is refused before its weights are fetched ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "dynamic"),
        ({"attention_bias": True}, "attention_bias"),
        ({"model_type": "bloom"}, "bloom"),
        ({"a_new_setting": 3}, "a_new_setting"),
    ],
)
def test_an_unsupported_model_is_refused_before_its_weights(
    hub: Hub, tiny_repo: Toy, settings: dict[str, object], named: str
) -> None:
    hub.repos[REPO] = tiny_repo.with_config(**settings).repo()
    assert named in told(REPO, UnsupportedSetting)
    assert hub.asked() == hub.asked("HEAD") == ["config.json"]


@pytest.mark.parametrize("listed", ["../x.safetensors", "/etc/x.safetensors", "a/b.safetensors", "x.bin", 3, ["x"]])
def test_an_index_may_name_nothing_but_safetensors_beside_it(hub: Hub, tiny_repo: Toy, listed: object) -> None:
    files = in_two_shards(tiny_repo).files() | {INDEX: json.dumps({"weight_map": {"a": listed}}).encode()}
    hub.repos[REPO].files = files
    assert INDEX in told(REPO, BadWeights)
    assert hub.asked() == ["config.json", "tokenizer.json", INDEX]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"weight_map": []}', b'{"weight_map": {}}', b"\xff\xfe"])
def test_an_index_that_cannot_be_read(hub: Hub, tiny_repo: Toy, body: bytes) -> None:
    hub.repos[REPO].files = in_two_shards(tiny_repo).files() | {INDEX: body}
    assert INDEX in told(REPO, BadWeights)


# --- what is not there, or not for everybody -----------------------------------------------------------------------


def test_a_model_that_is_not_there(hub: Hub) -> None:
    assert told("nobody/nothing") == (
        "The hub has no model nobody/nothing, or it is private and needs a token (HF_TOKEN)."
    )


def test_a_pinned_revision_that_is_not_there(hub: Hub, toys: dict[str, Toy]) -> None:
    known = catalogue.KNOWN["gpt2"]
    hub.repos[known.repo] = toys["gpt2"].repo(COMMIT)
    assert told("gpt2") == f"{known.repo} has no revision {known.revision} on the hub."


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json"])
def test_a_file_that_is_not_there(hub: Hub, tiny_repo: Toy, file: str) -> None:
    del hub.repos[REPO].files[file]
    assert told(REPO) == f"{REPO} has no {file} on the hub."


def test_a_repo_of_pickles(hub: Hub, tiny_repo: Toy) -> None:
    hub.repos[REPO].files["pytorch_model.bin"] = hub.repos[REPO].files.pop(SINGLE)
    assert told(REPO) == f"{REPO} has no weights as safetensors on the hub: pickles are not read."
    assert "pytorch_model.bin" not in hub.asked()


def test_a_shard_that_is_not_there(hub: Hub, tiny_repo: Toy) -> None:
    toy = in_two_shards(tiny_repo)
    hub.repos[REPO].files = toy.files()
    del hub.repos[REPO].files[toy.shards[1]]
    assert told(REPO) == f"{REPO} has no {toy.shards[1]} on the hub."


@pytest.mark.parametrize("public", [(), ("config.json", "tokenizer.json")])
def test_a_gated_model_says_what_to_do(
    hub: Hub, toys: dict[str, Toy], public: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub says 401 or 403, for the config already or for the weights only."""
    known = catalogue.KNOWN["gemma-3-270m"]
    hub.repos[known.repo] = toys["gemma-3-270m"].repo(str(known.revision), gated=True)
    hub.repos[known.repo].public = public
    assert told("gemma-3-270m") == (
        "google/gemma-3-270m is gated: accept its terms on the model's page of the hub, then give this app a token of "
        "yours (HF_TOKEN)."
    )
    assert hub.asked() == list(public)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert load("gemma-3-270m").run("Hi").logits.isfinite().all()


def test_a_token_that_the_hub_does_not_take(hub: Hub, tiny_repo: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_expired")
    assert told(REPO) == f"The hub does not take this app's token for {REPO}: check HF_TOKEN."


@pytest.mark.parametrize("name", ["a--b/c", "somebody/tiny.git", "somebody/a..b", "-x/y", "x/y-", "x/" + "y" * 200])
def test_a_name_that_no_repo_can_have(hub: Hub, name: str) -> None:
    assert told(name) == f"“{name}” is not a hub id: it has the form owner/name."
    assert hub.requests == []


@pytest.mark.parametrize("name", ["smollm3", "", "a/b/c", "~nobody/x", "a b/c", "x\0y", "z" * 5000, "/no/such/folder"])
def test_a_name_that_is_no_model(no_hub: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TokenwalkError) as caught:
        load(name)
    assert "There is no model" in str(caught.value)


# --- connections ---------------------------------------------------------------------------------------------------


def test_a_cut_download_goes_on_where_it_broke(
    hub: Hub, tiny_repo: Toy, right: torch.Tensor, waits: list[float], small_pieces: int
) -> None:
    size, broke_at = len(hub.repos[REPO].files[SINGLE]), 10 * small_pieces
    hub.faults[SINGLE] = Fault(times=1, cut_after=broke_at)
    heard: list[tuple[int, int]] = []
    model = load(REPO, progress=lambda done, total: heard.append((done, total)))
    assert hub.ranges(SINGLE) == [None, f"bytes={broke_at}-"]
    assert hub.sent[SINGLE] == size  # no byte twice
    assert heard == sorted(heard)
    assert heard[-1][0] == heard[-1][1] == sum(map(len, hub.repos[REPO].files.values()))
    assert torch.equal(model.run(TEXT).logits, right)


def test_a_hub_that_ignores_ranges_sends_the_whole_again(
    hub: Hub, tiny_repo: Toy, right: torch.Tensor, waits: list[float], small_pieces: int
) -> None:
    hub.faults[SINGLE] = Fault(times=1, cut_after=10 * small_pieces)
    hub.ignores_range = True
    heard: list[tuple[int, int]] = []
    model = load(REPO, progress=lambda done, total: heard.append((done, total)))
    assert hub.ranges(SINGLE) == [None, f"bytes={10 * small_pieces}-"]
    assert heard[-1][0] == heard[-1][1] == sum(map(len, hub.repos[REPO].files.values()))
    assert torch.equal(model.run(TEXT).logits, right)


def test_a_connection_that_was_reset_is_tried_again(hub: Hub, tiny_repo: Toy, right: torch.Tensor) -> None:
    hub.faults[SINGLE] = Fault(times=2, cut_after=20_000, reset=True)
    heard: list[tuple[int, int]] = []
    model = load(REPO, progress=lambda done, total: heard.append((done, total)))
    assert len(hub.ranges(SINGLE)) == 3
    assert heard[-1][0] == heard[-1][1] == sum(map(len, hub.repos[REPO].files.values()))
    assert torch.equal(model.run(TEXT).logits, right)


@pytest.mark.parametrize("reset", [False, True])
def test_a_connection_that_always_breaks_ends_with_a_sentence(
    hub: Hub, tiny_repo: Toy, waits: list[float], reset: bool
) -> None:
    hub.faults[SINGLE] = Fault(cut_after=1000, reset=reset)
    assert told(REPO).startswith(f"The download of {SINGLE} of {REPO} failed: ")
    assert len(hub.ranges(SINGLE)) == (3 if reset else 6)
    assert sum(waits) <= 10
    assert cached(SINGLE) == []


@pytest.mark.parametrize("status", [500, 503])
def test_a_hub_that_fails_once_is_asked_again(
    hub: Hub, tiny_repo: Toy, right: torch.Tensor, waits: list[float], status: int
) -> None:
    for file in (SINGLE, "config.json"):
        hub.faults[file] = Fault(times=1, status=status)
    assert torch.equal(load(REPO).run(TEXT).logits, right)


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("file", ["config.json", SINGLE])
def test_a_hub_that_always_fails_ends_with_a_sentence(
    hub: Hub, tiny_repo: Toy, waits: list[float], status: int, file: str
) -> None:
    hub.faults[file] = Fault(status=status)
    assert told(REPO) == f"The model hub answered {status} for {file} of {REPO}: try again later."
    assert sum(waits) <= 30


def test_nobody_at_the_hubs_address(no_hub: str, toys: dict[str, Toy], tmp_path: Path) -> None:
    began = time.monotonic()
    said = "The model hub can't be reached, and {} has not been downloaded before."
    assert told(REPO) == said.format(REPO)
    assert told("gpt2") == said.format("openai-community/gpt2")
    assert time.monotonic() - began < 5
    # The others keep working.
    toys["smollm2-135m"].write(catalogue.smollm2_folder())
    for name in ("smollm2-135m", str(toys["gpt2"].write(tmp_path / "folder"))):
        assert load(name).run("Hi").logits.isfinite().all()


def test_a_hub_that_takes_the_call_and_says_nothing(
    monkeypatch: pytest.MonkeyPatch, no_hub: str, waits: list[float]
) -> None:
    assert core_hub.PROBE_SECONDS <= 5
    monkeypatch.setattr(core_hub, "PROBE_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        began = time.monotonic()
        assert "can't be reached" in told(REPO)
        assert 0.2 < time.monotonic() - began < 5
    assert waits == []


def test_a_sign_in_page_in_the_hubs_place(hub: Hub, tiny_repo: Toy) -> None:
    hub.faults["config.json"] = Fault(no_commit=True)
    assert "not a model hub" in told(REPO)


@pytest.mark.parametrize("url", ["nonsense", "http://", "http://a b"])
def test_an_address_that_is_none(no_hub: str, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", url)
    assert "can't be reached" in told(REPO)
