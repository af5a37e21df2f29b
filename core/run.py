"""What one forward pass over one text gave."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from core.errors import TokenwalkError
from core.specs import Switches
from core.taps import Both, Enough, Recorder, Request, SwitchOff, UntilEnough
from core.tokens import Token

if TYPE_CHECKING:
    from core.model import Model


@dataclass(frozen=True)
class Candidate:
    """A token that may come next, with its probability over the whole vocabulary."""

    id: int
    text: str
    p: float


class Run:
    """Text in, everything out.

    `values[site][layer]` holds what was recorded inside the layers, `outside[site]` what was recorded before or after
    them; axes as the site's catalogue entry says. `stream` (token, width) is the residual stream after the last layer.
    """

    def __init__(
        self, model: "Model", text: str, tokens: Sequence[Token], stream: Tensor, off: Switches, recorder: Recorder
    ) -> None:
        self.model = model
        self.text = text
        self.tokens = tuple(tokens)
        self.stream = stream
        self.off = off
        if recorder.wants("final.norm") or recorder.wants("logits"):
            model.unembed(stream[None], recorder)
        recorded = {site: {at: value[0] for at, value in found.items()} for site, found in recorder.values.items()}
        self.values = {site: found for site, found in recorded.items() if -1 not in found}
        self.outside = {site: found[-1] for site, found in recorded.items() if -1 in found}

    @property
    def ids(self) -> list[int]:
        return [token.id for token in self.tokens]

    def places(self, token: int, before: int) -> tuple[int, ...]:
        """Where a token stands in the text, at positions below `before`."""
        return tuple(i for i, each in enumerate(self.ids[:before]) if each == token)

    @property
    def pieces(self) -> list[str]:
        """Each token's text; where its bytes are not whole characters, the bytes as ⟨F0 9F⟩."""
        return [token.text for token in self.tokens]

    @cached_property
    @torch.no_grad()
    def logits(self) -> Tensor:
        """(token, vocabulary), float32, computed when first asked for: a long text has hundreds of megabytes of it."""
        return self.model.unembed(self.stream[None])[0].float()

    def logits_at(self, position: int = -1) -> Tensor:
        """(vocabulary,), float32: the logits at one position only. Those of the last one are kept."""
        return self._last_logits if position in (-1, len(self.ids) - 1) else self._logits_at(position)

    @cached_property
    def _last_logits(self) -> Tensor:
        return self._logits_at(-1)

    @torch.no_grad()
    def _logits_at(self, position: int) -> Tensor:
        return self.model.unembed(self.stream[None, position, None])[0, 0].float()

    @torch.no_grad()
    def again(self, layer: int, *sites: str, heads: Sequence[int] = ()) -> dict[str, Tensor]:
        """What one layer's block hands to its taps, run once more from the saved stream: by site, without a batch axis.

        It ends at the last of these sites; those that the layer lacks are left out. `heads` picks from a map's head
        axis, in rising order. The run's switches stay off. Raises TokenwalkError where the run did not record
        "residual.before" in that layer.
        """
        before = self.values.get("residual.before", {}).get(layer)
        if before is None:
            raise TokenwalkError(f"Looking into layer {layer} needs a run that recorded “residual.before” there.")
        here = frozenset([layer])
        recorder = UntilEnough([Request(site, here, head) for site in sites for head in (*heads,) or (None,)])
        with suppress(Enough):
            self.model.block(layer, before[None], Both(SwitchOff([self.off]), recorder))
        return {site: found[layer][0] for site, found in recorder.values.items()}

    def probabilities(self, position: int = -1) -> Tensor:
        """(vocabulary,): softmax over the whole vocabulary of what comes after `position`."""
        return self.logits_at(position).softmax(-1)

    def top(self, k: int = 10, position: int = -1) -> list[Candidate]:
        """The k likeliest next tokens after `position`, likeliest first."""
        p, ids = self.probabilities(position).topk(min(k, self.model.vocabulary))
        text = self.model.tokenizer.text
        return [Candidate(i, text(i), float(each)) for i, each in zip(ids.tolist(), p, strict=True)]
