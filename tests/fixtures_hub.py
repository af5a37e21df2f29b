"""A stand-in in the hub's place: the fixtures, and what a person is told when it fails."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from huggingface_hub import constants, file_download
from huggingface_hub.utils import _http, close_session

from core.errors import TokenwalkError, Unreachable
from core.weights import load
from tests import hub_server, toy_repos

REPO, COMMIT = "somebody/tiny", "c" * 40


def point_at(monkeypatch: pytest.MonkeyPatch, url: str, cache: Path) -> None:
    """Sends huggingface_hub to `url`, with a cache and a token file of the test's own.

    It reads the environment when it is imported, and these constants at each call.
    """
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache / "hub"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(cache / "token"))
    monkeypatch.setattr(constants, "AGENT_HARNESSES_PATH", str(cache / "harnesses"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_OIDC_RESOURCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("TOKENWALK_CACHE", str(cache / "tokenwalk"))
    close_session()  # the next call makes a client of these settings


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[hub_server.Hub]:
    """A running stand-in for the hub, serving nothing yet; huggingface_hub talks to it and to nothing else."""
    served, server = hub_server.start()
    point_at(monkeypatch, served.url, tmp_path / "cache")
    yield served
    close_session()
    server.shutdown()
    server.server_close()


@pytest.fixture
def no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A hub that nobody listens at: every connection is refused."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        point_at(monkeypatch, url, tmp_path / "cache")
        yield url
    close_session()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that huggingface_hub would have waited before it tries again; it does not wait."""
    asked: list[float] = []
    clock = SimpleNamespace(sleep=asked.append, time=time.time, monotonic=time.monotonic)
    monkeypatch.setattr(file_download, "time", clock)
    monkeypatch.setattr(_http, "time", clock)
    return asked


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> int:
    """The bytes that huggingface_hub takes at a time: the toys are smaller than its own ten million."""
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 4096)
    return 4096


@pytest.fixture(scope="session")
def toys() -> dict[str, toy_repos.Toy]:
    """The toy of each named model, by its known name."""
    return toy_repos.all_toys()


@pytest.fixture
def tiny_repo(hub: hub_server.Hub) -> toy_repos.Toy:
    """A toy that the hub serves as REPO."""
    toy = toy_repos.smollm2()
    hub.repos[REPO] = toy.repo(COMMIT)
    return toy


@pytest.fixture
def right(tiny_repo: toy_repos.Toy, tmp_path: Path) -> torch.Tensor:
    """The logits of that toy, loaded from a folder."""
    return load(str(tiny_repo.write(tmp_path / "right"))).run(toy_repos.TEXT).logits


def told(name: str, kind: type[TokenwalkError] = Unreachable) -> str:
    """What a person is told when this model is asked for: one sentence on one line, without an address."""
    with pytest.raises(TokenwalkError) as caught:
        load(name)
    text = str(caught.value)
    assert isinstance(caught.value, kind), repr(caught.value)
    assert "\n" not in text
    assert "://" not in text
    assert text.endswith(".")
    assert len(text) < 250
    return text


def cached(file: str) -> list[Path]:
    """What the cache has of a file, and of downloads that did not end."""
    folder = Path(constants.HF_HUB_CACHE)
    return [*folder.rglob(file), *folder.rglob("*.incomplete")]
