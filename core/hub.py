"""A model's files from the Hugging Face hub: pinned, resumed where a download was cut, with progress in bytes.

Everything here goes through huggingface_hub and so follows its settings: HF_ENDPOINT, HF_TOKEN, HF_HOME,
HF_HUB_OFFLINE.
"""

import hashlib
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2  # the client that huggingface_hub speaks through
from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import (
    EntryNotFoundError,
    FileMetadataError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import get_session, logging, tqdm  # type: ignore[attr-defined]

from core.errors import BadWeights, Unreachable

Progress = Callable[[int, int], None]  # bytes so far, bytes in all: of the files whose download has begun
PROBE_SECONDS = 5.0
ATTEMPTS = 3  # at a file whose bytes arrived damaged, or whose connection was reset
# Here huggingface_hub has tried five times itself, and has taken a cut download up where it broke.
_TRIED_AGAIN = (httpx2.ConnectError, httpx2.TimeoutException, httpx2.RemoteProtocolError)
logging.set_verbosity_error()  # what matters comes as an exception; its retries would fill a person's terminal
SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"


def fetch(
    repo: str,
    revision: str | None,
    progress: Progress | None = None,
    check: Callable[[Path], object] = lambda folder: None,
) -> Path:
    """The folder of the hub's cache that holds the model's files; its name is the commit.

    `revision` is a commit, branch or tag (None: the newest). `check` is given the folder once config.json is there and
    may raise, so that a model that cannot be run is refused before its weights are fetched. Raises Unreachable with
    one sentence that says what to do.
    """
    meter = _Meter(progress)
    if revision is not None and (cached := _cached(repo, revision)) is not None:
        return cached  # a pinned model that is here needs no network
    if not _reachable():
        if (cached := _cached(repo, revision)) is not None:
            return cached
        raise Unreachable(f"The model hub can't be reached, and {repo} has not been downloaded before.")
    return _files(repo, revision, check, lambda name, at: _file(repo, name, at, meter))


def _files(
    repo: str, revision: str | None, check: Callable[[Path], object], get: Callable[[str, str | None], Path]
) -> Path:
    """Gets each file that the model needs, config.json first; returns their folder."""
    config = get("config.json", revision)
    check(config.parent)
    commit = config.parent.name  # the rest comes from the same commit, even if the branch moves meanwhile
    get("tokenizer.json", commit)
    try:
        get(SINGLE, commit)
    except _Missing:
        try:
            index = get(INDEX, commit)
        except _Missing:
            raise _Missing(f"{repo} has no weights as safetensors on the hub: pickles are not read.") from None
        for shard in shards(index):
            get(shard, commit)
    return config.parent


def shards(index: Path) -> list[str]:
    """The weight files that an index names. Raises BadWeights where it names anything but safetensors beside it."""
    try:
        names = set(json.loads(index.read_text("utf-8"))["weight_map"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BadWeights(f"{index.name} cannot be read as an index of shards.") from None
    if not names or not all(isinstance(name, str) and re.fullmatch(r"[^/\\]+\.safetensors", name) for name in names):
        raise BadWeights(f"{index.name} names files that are no safetensors beside it.")
    return sorted(names)


def _cached(repo: str, revision: str | None) -> Path | None:
    """The model's folder where every file is in the cache already, else None."""

    def get(name: str, at: str | None) -> Path:
        found = try_to_load_from_cache(repo, name, revision=at)
        if not isinstance(found, str):
            raise _Missing(name)
        return Path(found)

    try:
        return _files(repo, revision, lambda folder: None, get)
    except (_Missing, HFValidationError):
        return None


def _reachable() -> bool:
    """Whether anything answers at the hub: asked once, since the library itself tries for 25 s before it gives up."""
    if constants.HF_HUB_OFFLINE:
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=PROBE_SECONDS)
    except Exception as error:
        if _is_connection(error):
            return False
        raise
    return True


def _is_connection(error: Exception) -> bool:
    return isinstance(error, OSError | httpx2.HTTPError | httpx2.InvalidURL)


class _Missing(Unreachable):
    """The repo has no such file."""


class _Meter:
    """Adds the bytes of several files up."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.done = self.total = 0

    def add(self, done: int, total: int) -> None:
        self.done += done
        self.total += total
        if self.progress is not None:
            self.progress(self.done, max(self.total, self.done))

    def bar(self) -> type[tqdm]:
        """A progress bar class, as huggingface_hub asks for, that draws nothing and reports here."""
        meter = self

        class Bar(tqdm):
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                self.begun = int(kwargs.get("initial") or 0)
                meter.add(self.begun, int(kwargs.get("total") or 0))
                quiet = {**kwargs, "file": io.StringIO(), "disable": False}
                super().__init__(*args, **quiet)  # type: ignore[no-untyped-call]

            def update(self, n: float | None = 1) -> None:
                meter.add(int(n or 0), 0)
                super().update(n)

        return Bar


def _file(repo: str, name: str, revision: str | None, meter: _Meter) -> Path:
    """One file, downloaded or from the cache."""
    for attempt in range(ATTEMPTS):
        before = meter.done, meter.total
        try:
            path = Path(hf_hub_download(repo, name, revision=revision, tqdm_class=meter.bar()))
            if meter.done != before[0]:
                _verify(path)
            return path
        except Exception as error:
            sentence, final = _why(error, repo, name, revision)
            if sentence is None:
                raise
            if isinstance(error, EntryNotFoundError) and not isinstance(error, LocalEntryNotFoundError):
                raise _Missing(sentence) from error
            if final or attempt == ATTEMPTS - 1:
                raise Unreachable(sentence) from error
            meter.done, meter.total = before
    raise AssertionError


def _verify(path: Path) -> None:
    """Deletes a file that was just downloaded, and raises OSError, where its bytes are not those that the hub names.

    In the cache a file is a link to a blob that is named by the hub's hash of it: SHA-256, or git's SHA-1.
    """
    blob = path.resolve()
    with blob.open("rb") as file:
        if re.fullmatch("[0-9a-f]{64}", blob.name):
            digest = hashlib.file_digest(file, "sha256")
        elif re.fullmatch("[0-9a-f]{40}", blob.name):
            digest = hashlib.sha1(b"blob %d\0" % blob.stat().st_size + file.read(), usedforsecurity=False)
        else:  # no hash: a mirror of the hub, or a file system without links
            return
    if digest.hexdigest() != blob.name:
        path.unlink()
        blob.unlink()
        raise OSError("its bytes are not those that the hub names")


def _why(error: Exception, repo: str, name: str, revision: str | None) -> tuple[str | None, bool]:
    """One sentence for a person, and whether trying again is useless; (None, …) for a fault of our own."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
        return _why(error.__cause__, repo, name, revision)[0], True
    if isinstance(error, FileMetadataError):
        return "What answers at the hub's address is not a model hub: perhaps a sign-in page of this network.", True
    if isinstance(error, GatedRepoError) or status == 403:
        return (
            f"{repo} is gated: accept its terms on the model's page of the hub, then give this app a token of yours "
            "(HF_TOKEN)."
        ), True
    if status == 401 and not isinstance(error, RepositoryNotFoundError):
        return f"The hub does not take this app's token for {repo}: check HF_TOKEN.", True
    if isinstance(error, RevisionNotFoundError):
        return f"{repo} has no revision {revision} on the hub.", True
    if isinstance(error, RepositoryNotFoundError):
        return f"The hub has no model {repo}, or it is private and needs a token (HF_TOKEN).", True
    if isinstance(error, LocalEntryNotFoundError | OfflineModeIsEnabled):
        return f"The model hub can't be reached, and {repo} has not been downloaded before.", True
    if isinstance(error, EntryNotFoundError):
        return f"{repo} has no {name} on the hub.", True
    if isinstance(error, HFValidationError):
        return f"“{repo}” is not a hub id: it has the form owner/name.", True
    if isinstance(error, HfHubHTTPError):
        return f"The model hub answered {status} for {name} of {repo}: try again later.", int(status or 0) < 500
    if _is_connection(error):
        return f"The download of {name} of {repo} failed: {_short(error)}.", isinstance(error, _TRIED_AGAIN)
    return None, True


def _short(error: Exception) -> str:
    """The first sentence of an error, without the addresses that a person has no use for."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return text.split("://")[0].rstrip(". :(")[:160]
