"""A run over a text that begins as another run's does: what causal models computed for the shared beginning stands.

Keys, values and states are made anew for every position, since a run keeps none; the rest of each layer, which is most
of it, runs for the new positions alone.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from core.errors import TokenwalkError
from core.run import Run
from core.taps import Both, Newest, Recorder, SwitchOff, parse_request
from core.tokens import Token

AROUND = ("residual.before", "residual.after")


def shared(run: Run, tokens: Sequence[Token]) -> int:
    """How many tokens a text has in common with a run's from the beginning on; at least its last one counts as new."""
    pairs = zip(run.ids, tokens[:-1], strict=False)
    return next((i for i, (mine, other) in enumerate(pairs) if mine != other.id), min(len(run.ids), len(tokens) - 1))


@torch.no_grad()
def extended(run: Run, text: str) -> Run:
    """The run over `text` with the same switches and the same record, from a run that shares its beginning.

    `run` recorded the stream around every layer and, besides, nothing inside the layers. Equal to `Model.run` but for
    rounding. Raises TokenwalkError for another record, an empty text, or one that is too long.
    """
    model = run.model
    if sorted(run.values) != sorted(AROUND) or any(len(run.values[site]) != model.layers for site in AROUND):
        raise TokenwalkError("Only a run that recorded the stream around every layer, and no more, can go on.")
    tokens = model.tokenizer.encode(text)
    model.check_length(len(tokens))
    known = shared(run, tokens)
    outside = Recorder([parse_request(site, model.sites, model.layers) for site in run.outside])
    before = model.embed(torch.tensor([[token.id for token in tokens]]), outside)
    tap = Both(SwitchOff([run.off]), Newest(len(tokens) - known, len(tokens)))
    streams: dict[str, dict[int, Tensor]] = {site: {} for site in AROUND}
    for layer in range(model.layers):
        new = model.block(layer, before, tap)
        after = torch.cat((run.values["residual.after"][layer][None, :known], new), dim=1)
        streams["residual.before"][layer], streams["residual.after"][layer] = before, after
        before = after
    outside.values.update(streams)
    return Run(model, text, tokens, before[0], run.off, outside)
