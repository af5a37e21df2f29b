"""What a run records and what it switches off.

A tap is an argument of the call, never state on a model: one loaded model serves every visitor at once. A block hands
each value that has a name to its tap and goes on with what comes back:

    pattern = tap("attention.pattern", pattern)     # (batch, head, query, key)

The plain `Tap` gives it back as it is. `SwitchOff` multiplies by 0 where that is exact; `Recorder` keeps what it was
asked for. Switched off first, then recorded: what is recorded is what the model went on with.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from core.errors import TokenwalkError
from core.specs import Switches, parse_layers


@dataclass(frozen=True)
class Site:
    """A named place in a forward pass.

    `axes` leaves out the leading batch axis. `per_layer` is False for the few places outside the blocks. `switchable`
    says that a switch acts here. `kinds` holds the mixer kinds whose layers have the site; empty means every layer.
    """

    name: str
    axes: tuple[str, ...]
    meaning: str
    per_layer: bool = True
    switchable: bool = False
    kinds: tuple[str, ...] = ()


class Tap:
    """Gives every value back as it is, and wants nothing."""

    def at(self, layer: int) -> "Tap":
        """The tap that serves one layer's block."""
        return self

    def wants(self, site: str) -> bool:
        """Whether the value at this site is looked at: a block skips building what nobody asked for."""
        return False

    def heads(self, site: str, count: int) -> list[int]:
        """The heads, of `count`, that are wanted at a site with a head axis."""
        return []

    def __call__(self, site: str, value: Tensor) -> Tensor:
        return value


class SwitchOff(Tap):
    """Multiplies by 0 what is switched off: row i of the batch by the i-th of `rows`."""

    def __init__(self, rows: Sequence[Switches], layer: int = -1) -> None:
        self.rows = rows
        self.layer = layer

    def at(self, layer: int) -> "SwitchOff":
        return SwitchOff(self.rows, layer)

    def __call__(self, site: str, value: Tensor) -> Tensor:
        if site == "mixer.write":
            off = [[0] if self.layer in row.mixers else [] for row in self.rows]
        elif site == "ffn.write":
            off = [[0] if self.layer in row.ffns else [] for row in self.rows]
        elif site == "mixer.heads":
            off = [[head for layer, head in row.heads if layer == self.layer] for row in self.rows]
        elif site == "ffn.neurons":
            off = [[neuron for layer, neuron in row.neurons if layer == self.layer] for row in self.rows]
        else:
            return value
        return value if not any(off) else value * self._factor(site, value, off)

    @staticmethod
    def _factor(site: str, value: Tensor, off: list[list[int]]) -> Tensor:
        """1, and 0 where a row switches the part off, shaped to multiply `value`."""
        parts = {"mixer.heads": value.shape[2], "ffn.neurons": value.shape[-1]}.get(site, 1)
        factor = torch.ones(len(off), 1, parts, dtype=value.dtype)
        for row, indices in enumerate(off):
            if indices:
                factor[row, :, indices] = 0
        return factor.unsqueeze(-1) if site == "mixer.heads" else factor


class Newest(Tap):
    """Goes on with the last `count` positions alone once a layer's mixer has read from all `tokens`.

    For a block whose other positions are known or not needed: what it returns has `count` positions.
    """

    def __init__(self, count: int, tokens: int) -> None:
        self.count = count
        self.tokens = tokens

    def __call__(self, site: str, value: Tensor) -> Tensor:
        if site == "attention.query":
            return value[:, :, -self.count :]
        if site in ("attention.gate", "mixer.heads", "residual.between"):
            return value[:, -self.count :]
        if site == "mixer.write":  # the stream that it is added to still has all positions
            return F.pad(value, (0, 0, self.tokens - self.count, 0))
        return value


@dataclass(frozen=True)
class Request:
    """One thing to record: a site, the layers it is wanted in (None: all of them), and the heads (None: all)."""

    site: str
    layers: frozenset[int] | None = None
    head: int | None = None


_BY_HEAD = ("attention.pattern", "mamba2.map", "deltanet.map")  # token by token: too large to keep for every head


def parse_request(spec: str, sites: Sequence[Site], layers: int) -> Request:
    """`site`, `site:LAYERS` or `site:LAYER.HEAD`; layers as in `core.specs`.

    Raises TokenwalkError for a site that the model does not have.
    """
    name, _, rest = spec.partition(":")
    site = next((site for site in sites if site.name == name), None)
    if site is None:
        known = ", ".join(site.name for site in sites)
        raise TokenwalkError(f"This model has no site “{name}”; it has {known}.")
    if not rest:
        return Request(name)
    if not site.per_layer:
        raise TokenwalkError(f"“{spec}”: {name} stands outside the layers, so it takes no layer.")
    text, _, head = rest.partition(".")
    if head and (site.name not in _BY_HEAD or not re.fullmatch(r"\d{1,9}", head)):
        raise TokenwalkError(f"“{spec}”: {name} cannot be picked by head “{head}”.")
    return Request(name, frozenset(parse_layers(text, layers, spec)), int(head) if head else None)


class Recorder(Tap):
    """Keeps the sites that it was asked for, and only those.

    `values[site]` maps a layer to its value, batch axis first; a site outside the layers stands under the key -1.
    Where single heads were asked for, the head axis holds just those, in rising order.
    """

    def __init__(self, requests: Sequence[Request], values: dict[str, dict[int, Tensor]] | None = None) -> None:
        self.requests = requests
        self.values: dict[str, dict[int, Tensor]] = {} if values is None else values
        self.layer = -1

    def at(self, layer: int) -> "Recorder":
        here = type(self)(self.requests, self.values)
        here.layer = layer
        return here

    def _matching(self, site: str) -> list[Request]:
        return [r for r in self.requests if r.site == site and (r.layers is None or self.layer in r.layers)]

    def wants(self, site: str) -> bool:
        return bool(self._matching(site))

    def heads(self, site: str, count: int) -> list[int]:
        picked: set[int] = set()
        for request in self._matching(site):
            if request.head is None:
                return list(range(count))
            if request.head >= count:
                raise TokenwalkError(f"{site} of layer {self.layer} has heads 0 to {count - 1}, not {request.head}.")
            picked.add(request.head)
        return sorted(picked)

    def __call__(self, site: str, value: Tensor) -> Tensor:
        if self.wants(site):
            self.values.setdefault(site, {})[self.layer] = value.detach()
        return value


class Enough(Exception):
    """Everything that was asked for has been there."""


class UntilEnough(Recorder):
    """Raises `Enough` when each site that it was asked for has been there: what comes after it need not be computed."""

    def __call__(self, site: str, value: Tensor) -> Tensor:
        super().__call__(site, value)
        if all(request.site in self.values for request in self.requests):
            raise Enough
        return value


class Both(Tap):
    """Switches off first, then records."""

    def __init__(self, switch: Tap, record: Tap) -> None:
        self.switch = switch
        self.record = record

    def at(self, layer: int) -> "Both":
        return Both(self.switch.at(layer), self.record.at(layer))

    def wants(self, site: str) -> bool:
        return self.record.wants(site)

    def heads(self, site: str, count: int) -> list[int]:
        return self.record.heads(site, count)

    def __call__(self, site: str, value: Tensor) -> Tensor:
        return self.record(site, self.switch(site, value))


PLAIN = Tap()
