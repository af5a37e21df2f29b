"""What the cache of the hub's files holds: whole models, that need no hub, and never a wrong byte."""

import socket
import threading
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants

from core.weights import load
from tests.fixtures_hub import COMMIT, REPO, cached, told
from tests.hub_server import Fault, Hub
from tests.toy_repos import SINGLE, TEXT, Toy, in_two_shards, smollm2

# --- without a hub -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sharded", [False, True])
def test_offline_a_cached_model_is_loaded_without_a_request(
    hub: Hub, tiny_repo: Toy, right: torch.Tensor, sharded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.repos[REPO] = (in_two_shards(tiny_repo) if sharded else tiny_repo).repo(COMMIT)
    load(REPO)
    hub.requests.clear()
    hub.probes = 0
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    model = load(REPO)
    assert hub.requests == []
    assert hub.probes == 0
    assert torch.equal(model.run(TEXT).logits, right)
    assert model.card.source == f"hub: {REPO} at {COMMIT[:12]}"
    assert "can't be reached" in told("somebody/else")


def test_a_cached_model_is_loaded_when_the_hub_is_gone(
    hub: Hub, tiny_repo: Toy, right: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(REPO)
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{held.getsockname()[1]}")
        assert torch.equal(load(REPO).run(TEXT).logits, right)


def test_half_a_model_in_the_cache_is_none(hub: Hub, tiny_repo: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    del hub.repos[REPO].files[SINGLE]
    told(REPO)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "can't be reached" in told(REPO)


# --- wrong bytes ---------------------------------------------------------------------------------------------------


def other_weights(tiny_repo: Toy) -> bytes:
    """A weight file of the same size that is of another model."""
    return tiny_repo.with_tensors({"model.norm.weight": -tiny_repo.tensors["model.norm.weight"]}).files()[SINGLE]


@pytest.mark.parametrize("file", [SINGLE, "config.json"])
def test_wrong_bytes_once_are_fetched_again(hub: Hub, tiny_repo: Toy, right: torch.Tensor, file: str) -> None:
    wrong = other_weights(tiny_repo) if file == SINGLE else tiny_repo.files()[file].replace(b"100000", b"900000")
    assert len(wrong) == len(tiny_repo.files()[file])
    assert wrong != tiny_repo.files()[file]
    hub.faults[file] = Fault(times=1, body=wrong)
    assert torch.equal(load(REPO).run(TEXT).logits, right)
    assert hub.ranges(file) == [None, None]


@pytest.mark.parametrize(
    "fault",
    [
        Fault(etag="a" * 64),
        Fault(etag="a" * 40),
        Fault(body=other_weights(smollm2())),
        Fault(size=1000),
        Fault(size=10_000_000),
        Fault(body=b""),
        Fault(body=b"short"),
    ],
)
def test_wrong_bytes_become_no_model(
    hub: Hub, tiny_repo: Toy, right: torch.Tensor, waits: list[float], fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.faults[SINGLE] = fault
    assert told(REPO).startswith(f"The download of {SINGLE} of {REPO} failed: ")
    assert cached(SINGLE) == []
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert "can't be reached" in told(REPO)  # nor is it one of the cache's
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    hub.faults.clear()
    assert torch.equal(load(REPO).run(TEXT).logits, right)


def test_a_mirror_whose_etags_are_no_hashes_serves_too(hub: Hub, tiny_repo: Toy, right: torch.Tensor) -> None:
    hub.faults[SINGLE] = Fault(etag="66f2-1a2b")
    assert torch.equal(load(REPO).run(TEXT).logits, right)


# --- the cache itself ----------------------------------------------------------------------------------------------


def test_two_visitors_at_once_fetch_a_model_once(
    hub: Hub, tiny_repo: Toy, right: torch.Tensor, small_pieces: int
) -> None:
    size = len(hub.repos[REPO].files[SINGLE])
    hub.faults[SINGLE] = Fault(pause=0.02, piece=size // 10)
    found: list[torch.Tensor] = []
    visitors = [threading.Thread(target=lambda: found.append(load(REPO).run(TEXT).logits)) for _ in range(3)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    assert len(found) == 3
    assert all(torch.equal(logits, right) for logits in found)
    assert hub.sent[SINGLE] == size


def test_a_cache_that_cannot_be_written(
    hub: Hub, tiny_repo: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a-file").write_text("")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "a-file"))
    assert told(REPO).startswith(f"The download of config.json of {REPO} failed: ")
