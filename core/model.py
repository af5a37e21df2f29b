"""A model is three functions, `embed`, `block` and `unembed`, over a residual stream (batch, token, width).

A forward pass is the obvious loop over the three. Whatever starts in the middle of the stack (a sweep of switch-offs,
the logit lens, a resumed run) calls the same three: there is no second forward pass.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from core.config import Config
from core.errors import TokenwalkError
from core.layout import Layout, Weights
from core.run import Run
from core.specs import Shape, Switches, parse_switches
from core.taps import PLAIN, Both, Recorder, Site, SwitchOff, Tap, parse_request
from core.tokens import Tokenizer


@dataclass(frozen=True)
class Rotary:
    """RoPE in one layer: `dim` of each head's `head_dim` channels turn, by base `theta`, slowed down by `factor`."""

    dim: int
    head_dim: int
    theta: float
    factor: float


@dataclass(frozen=True)
class Card:
    """Where a model comes from: what a page says about it beside its name."""

    name: str
    source: str
    licence: str = ""
    note: str = ""


class Model(ABC):
    """One architecture. A subclass is one file: its settings, its tensors, its sites and the three functions.

    Between `attach` and the end of the process nothing on a model changes, so that all visitors share it.
    """

    model_types: ClassVar[tuple[str, ...]]  # of config.json
    norm: ClassVar[str] = "RMSNorm"  # of the stream, before each half of a layer

    # Set by `read`.
    width: int
    vocabulary: int
    context: int  # tokens that it was made for; `check_length` holds a text to it
    mixers: tuple[str, ...]  # each layer's kind, a constant of core.specs
    neurons: int  # in each layer's FFN
    eps: float  # of the norm
    tied: bool  # whether the unembedding is the embedding table

    # Set by `attach`.
    weights: Weights
    tokenizer: Tokenizer
    card: Card

    def __init__(self, config: Config) -> None:
        """Raises UnsupportedSetting for a setting that is not implemented; no weight has been read by then."""
        self.read(config)
        config.finish()
        self.layout = self.tensors()
        self.sites = self.catalogue()
        layers = range(len(self.mixers))
        self.shape = Shape(self.mixers, tuple(map(self.heads, layers)), (self.neurons,) * len(layers))

    # --- what an architecture says ---------------------------------------------------------------------------------

    @abstractmethod
    def read(self, config: Config) -> None:
        """Takes the settings."""

    @abstractmethod
    def tensors(self) -> Layout:
        """The tensors that the three functions read, with their shapes in the file."""

    @abstractmethod
    def catalogue(self) -> tuple[Site, ...]:
        """Every named place, in execution order."""

    @abstractmethod
    def heads(self, layer: int) -> int:
        """Heads of the layer's mixer: the query heads where keys are shared."""

    @abstractmethod
    def embed(self, ids: Tensor, tap: Tap = PLAIN) -> Tensor:
        """ids (batch, token) -> residual stream (batch, token, width)."""

    @abstractmethod
    def block(self, layer: int, x: Tensor, tap: Tap = PLAIN) -> Tensor:
        """The stream before layer `layer` -> the stream after it, both (batch, token, width)."""

    @abstractmethod
    def unembed(self, x: Tensor, tap: Tap = PLAIN) -> Tensor:
        """(batch, token, width) -> logits (batch, token, vocabulary)."""

    @abstractmethod
    def output_matrices(self, layer: int) -> tuple[str, str]:
        """Names of the matrices through which the layer's mixer and its FFN write to the stream."""

    @abstractmethod
    def readout(self, token: int) -> tuple[Tensor, Tensor]:
        """How the final norm's output becomes this token's logit: a direction (width,) and a constant ().

        The logit is direction · (the stream divided by its root mean square, for LayerNorm less its mean) + constant.
        """

    @abstractmethod
    def kept(self, layer: int, tokens: int) -> int:
        """Numbers that a model which writes on keeps of the layer after so many tokens: keys and values, or a state."""

    def write_scale(self, layer: int, half: str, raw: Tensor) -> Tensor:
        """What a half ("mixer" or "ffn") multiplies its output by before it is added to the stream: like `raw` or ().

        `raw`: (…, width), the product of what its parts hand over and its output matrix.
        """
        return raw.new_ones(())

    def rotary(self, layer: int) -> Rotary | None:
        """How the layer's queries and keys turn with their position; None where they do not."""
        return None

    # --- what follows from it --------------------------------------------------------------------------------------

    def attach(self, weights: Weights, tokenizer: Tokenizer, card: Card) -> "Model":
        """This model, ready to run."""
        self.weights, self.tokenizer, self.card = weights, tokenizer, card
        return self

    @property
    def layers(self) -> int:
        return len(self.mixers)

    def table(self) -> Tensor:
        """The embedding table, (vocabulary, width), as the file has it."""
        return self.weights.outside[self.layout.row_tables[0]]

    def forward(self, ids: Tensor, tap: Tap = PLAIN) -> Tensor:
        """ids (batch, token) -> the stream after the last layer, for `unembed` to read where it is wanted."""
        return self.resume(0, self.embed(ids, tap), tap)

    def resume(self, layer: int, x: Tensor, tap: Tap = PLAIN) -> Tensor:
        """From the stream before layer `layer` to the stream after the last one."""
        for at in range(layer, self.layers):
            x = self.block(at, x, tap)
        return x

    def switches(self, off: Sequence[str]) -> Switches:
        """What specs such as `mixer:3` switch off here. Raises TokenwalkError for one that fits no part."""
        return parse_switches(list(off), self.shape)

    def check_length(self, tokens: int) -> None:
        """Raises TokenwalkError for no token, or for more than the model can be given."""
        if tokens == 0:
            raise TokenwalkError("There is no text yet: type a sentence.")
        if tokens > self.context:
            raise TokenwalkError(
                f"The text is {tokens:,} tokens long; {self.card.name} takes {self.context:,} at most."
            )

    @torch.no_grad()
    def run(self, text: str, record: Sequence[str] = (), off: Sequence[str] = ()) -> Run:
        """One forward pass over a text.

        `record` names sites: `"attention.pattern"`, `"attention.pattern:27"`, `"mamba2.map:3.5"` (layer 3, head 5).
        `off` names what is switched off, by the grammar of `core.specs`. Raises TokenwalkError for an empty text, one
        that is too long, or a name that the model does not have.
        """
        tokens = self.tokenizer.encode(text)
        self.check_length(len(tokens))
        recorder = Recorder([parse_request(spec, self.sites, self.layers) for spec in record])
        switches = self.switches(off)
        tap = Both(SwitchOff([switches]), recorder) if switches else recorder
        ids = torch.tensor([[token.id for token in tokens]])
        stream = self.forward(ids, tap)
        return Run(self, text, tokens, stream[0], switches, recorder)
