"""How a checkpoint's tensors lie in memory: read once, upcast once, laid out the way the products want them.

A two-dimensional weight of a layer reads as (in, out), so that a product is `h @ w["mlp.down_proj.weight"]`. The models
write `project(h, w, "mlp.down_proj")` for it, which is the same, faster: weights that read the same input lie side by
side in one matrix, so that one product serves them all, and packed in the order in which the processor reads them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import overload

import torch
from torch import Tensor

# Named here once, with its overload: torch looks for it anew at each call otherwise, for longer than a call takes.
_LINEAR = torch.ops.mkldnn._linear_pointwise.default
FEW = 4  # The reference's products of fewer rows are nearer to float64 than those of more.
PACKED_FOR = 64  # rows: oneDNN's order in memory is the same from a few rows to thousands
READERS = 16  # parts of a table, each read by one thread


@dataclass(frozen=True)
class Layout:
    """What an architecture says about its tensors. All names are the checkpoint's, without its prefix.

    `shapes` are as in the file. `together` lists, by their names within a layer, the weights that lie side by side.
    `one_sum` names those of a layer whose products may be added up in one piece, since the logits' rounding shows least
    of theirs: an FFN's first, what comes out of Granite's layers, and what goes into Qwen3.5's attention.
    `in_out` says that the file already stores matrices as (in, out), as GPT-2's does. `row_tables` are read by row and
    stay (row, channel): embeddings.
    """

    shapes: Mapping[str, tuple[int, ...]]
    prefixes: tuple[str, ...]
    layer_prefix: str
    layers: int
    together: tuple[tuple[str, ...], ...] = ()
    one_sum: tuple[str, ...] = ()
    in_out: bool = False
    row_tables: tuple[str, ...] = ()
    passengers: tuple[str, ...] = ()  # patterns of tensors that a real file carries and nothing reads

    def turned(self, name: str) -> bool:
        """Whether the file has this matrix as (out, in), so that it is stored turned round."""
        return len(self.shapes[name]) == 2 and not self.in_out and name not in self.row_tables

    def place(self, name: str) -> tuple[int | None, str]:
        """The layer that a tensor belongs to (None: outside them) and its name there."""
        if not name.startswith(self.layer_prefix):
            return None, name
        layer, _, rest = name.removeprefix(self.layer_prefix).partition(".")
        return int(layer), rest


class Matrix:
    """One matrix of a product, or several side by side that read the same input: (in, sum of `widths`).

    A packed one lies in the order in which oneDNN reads it, which saves a third to a half of a short text's run. It is
    for running only: what is trained, and what is not float32, lies plainly.
    """

    def __init__(self, sources: Sequence[Tensor], dtype: torch.dtype, packed: bool, one_sum: bool = False) -> None:
        """`sources` are (in, out), of any type and order in memory; they are copied."""
        self.widths = [source.shape[1] for source in sources]
        self.packed = packed and dtype == torch.float32 and can_pack()
        channels = sources[0].shape[0]
        if self.packed:
            turned = torch.empty(sum(self.widths), channels)
            for source, part in zip(sources, turned.split(self.widths), strict=True):
                part.copy_(source.t())
            self.pieces = [_pack(piece) for piece in turned.chunk(1 if one_sum else _pieces(channels), dim=1)]
        else:
            self.pieces = [torch.empty(channels, sum(self.widths), dtype=dtype)]
            for source, part in zip(sources, self.pieces[0].split(self.widths, dim=1), strict=True):
                part.copy_(source)

    def plain(self) -> Tensor:
        """(in, out). Of a packed matrix, a copy of its own, exact."""
        if not self.packed:
            return self.pieces[0]
        return torch.cat([piece.to_dense() for piece in self.pieces], dim=1).t()

    def times(self, h: Tensor, bias: Tensor | None = None) -> Tensor:
        """h · matrix + bias: (…, in) -> (…, out)."""
        if not self.packed:
            return h @ self.pieces[0] if bias is None else h @ self.pieces[0] + bias
        if (
            h.shape[:-1].numel() < FEW
        ):  # each row 16 times, with a sixteenth of its channels: no dearer, so few are they
            y = self.times(h * _sixteenths(h.shape[-1]).view(16, *[1] * (h.ndim - 1), -1)).sum(0)
            return y if bias is None else y + bias
        if len(self.pieces) == 1:
            return _linear(h, self.pieces[0], bias)
        parts = h.chunk(len(self.pieces), dim=-1)
        y = _linear(parts[0], self.pieces[0], bias)
        for part, piece in zip(parts[1:], self.pieces[1:], strict=True):
            y.add_(_linear(part, piece))  # by oneDNN itself a long text's run would take a twentieth longer
        return y


def _pack(matrix: Tensor) -> Tensor:
    """(out, in), as oneDNN wants it: opaque but for `to_dense`."""
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(matrix.contiguous(), PACKED_FOR)
    return packed


def _pieces(channels: int) -> int:
    """How many sums a product over so many input channels is made of.

    The reference's products add up in blocks of some 256 channels, oneDNN in blocks of 512 and, past 1,024 channels,
    longer ones: in one piece its rounding is 1.5 to 2.3 times the reference's, over a whole model up to 1.9 times.
    Pieces, each a few per cent dearer, hold a whole model of random weights to 1.1 to 1.5 times, with any ids: the
    longest sums, which round most, are made of as many as the reference's. A sum of 768 channels is there by itself.
    """
    if channels <= 256 or channels == 768:
        return 1
    wanted = 4 if 768 < channels <= 1024 else 2 if channels <= 1536 else channels // 256
    return next(pieces for pieces in (wanted, 4, 2, 1) if channels % pieces == 0)


@cache
def _sixteenths(channels: int) -> Tensor:
    """(16, channels): 1 in one sixteenth of the channels, else 0."""
    return (torch.arange(channels) * 16 // channels == torch.arange(16)[:, None]).float()


def _linear(h: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """h · weightᵀ + bias by oneDNN, which no gradient passes. `weight`: (out, in), plain or packed."""
    y: Tensor = _LINEAR(h, weight, bias, "none", [], "")
    return y


@cache
def can_pack() -> bool:
    """Whether this build of torch has oneDNN's packed products: operators without a public name."""
    matrix, x = torch.arange(12.0).view(4, 3), torch.ones(2, 3)
    try:
        y = _linear(x, _pack(matrix))
    except (AttributeError, RuntimeError):
        return False
    return torch.equal(y, x @ matrix.t())


class LayerWeights(dict[str, Tensor]):
    """One layer's tensors by the checkpoint's names; matrices are (in, out).

    `matrices` are what the products read, by the names that lie in them. Asked for by name, a matrix is a view of that
    or, where it is packed, a plain copy made on the spot.
    """

    def __init__(self) -> None:
        super().__init__()
        self.matrices: dict[tuple[str, ...], Matrix] = {}

    def __missing__(self, name: str) -> Tensor:
        short = name.removesuffix(".weight")
        for names, matrix in self.matrices.items():
            if short in names:
                parts: tuple[Tensor, ...] = matrix.plain().split(matrix.widths, dim=1)
                return parts[names.index(short)]
        raise KeyError(name)


@overload
def project(h: Tensor, w: LayerWeights, name: str, /, *, bias: Tensor | None = None) -> Tensor: ...
@overload
def project(h: Tensor, w: LayerWeights, name: str, second: str, /, *more: str) -> tuple[Tensor, ...]: ...
def project(h: Tensor, w: LayerWeights, *names: str, bias: Tensor | None = None) -> Tensor | tuple[Tensor, ...]:
    """h times the weight of that name; of several names, in one product: `q, k, v = project(h, w, "q_proj", …)`.

    h: (b, t, in). Returns one (b, t, out) for each name. It is `h @ w[name + ".weight"] + bias`.
    """
    matrix = w.matrices[names]
    y = matrix.times(h, bias)
    if len(names) == 1:
        return y
    parts: tuple[Tensor, ...] = y.split(matrix.widths, dim=-1)
    return parts


def score_rows(h: Tensor, table: Tensor) -> Tensor:
    """h · tableᵀ: h's product with each row of a table, (…, channel) and (row, channel) -> (…, row)."""
    if h.shape[:-1].numel() == 1:
        return _score_rows_once(h, table)
    trained = torch.is_grad_enabled() and (h.requires_grad or table.requires_grad)
    fits = h.dtype == torch.float32 and not trained and can_pack()  # oneDNN takes a third to two thirds of the time
    return _linear(h, table) if fits else h @ table.t()


def _score_rows_once(h: Tensor, table: Tensor) -> Tensor:
    """The same of a single h, as after a run: one read of the table, which one thread alone does in twice the time."""
    each, column = len(table) // READERS, h.reshape(1, -1).t()  # not reshape(-1, 1), which takes four times as long
    most, rest = table[: READERS * each], table[READERS * each :]
    scores = torch.bmm(most.view(READERS, each, len(column)), column.expand(READERS, -1, -1))
    return torch.cat((scores.flatten(), (rest @ column).flatten())).view(*h.shape[:-1], len(table))


class Weights:
    """All tensors of a model: `outside` the layers, and `layers[i]`."""

    def __init__(self, layout: Layout, read: Callable[[str], Tensor], dtype: torch.dtype, packed: bool = True) -> None:
        """`read` gives a tensor of the file by its name without prefix. `packed`: for running, not for training."""
        self.outside: dict[str, Tensor] = {}
        self.layers = [LayerWeights() for _ in range(layout.layers)]
        self._stored: list[Tensor | Matrix] = []  # each once

        def matrix(layer: int, names: tuple[str, ...]) -> None:
            full = [f"{layout.layer_prefix}{layer}.{name}.weight" for name in names]
            sources = [_turned(layout, name, read(name)) for name in full]
            made = Matrix(sources, dtype, packed, names[0] in layout.one_sum)
            self.layers[layer].matrices[names] = made
            self._stored.append(made)

        for layer in range(layout.layers):
            for group in layout.together:
                if f"{layout.layer_prefix}{layer}.{group[0]}.weight" in layout.shapes:
                    matrix(layer, group)
        together = {name for group in layout.together for name in group}
        for name, shape in layout.shapes.items():
            layer_of, short = layout.place(name)
            if layer_of is None or len(shape) != 2:
                home = self.outside if layer_of is None else self.layers[layer_of]
                # A copy of its own: nothing goes on pointing into the mapped file.
                home[short] = torch.empty(shape, dtype=dtype).copy_(read(name))
                self._stored.append(home[short])
            elif short.removesuffix(".weight") not in together:
                matrix(layer_of, (short.removesuffix(".weight"),))

    @property
    def parameters(self) -> list[Tensor]:
        """Each stored tensor once. Training steps on these; of a packed matrix it is a copy."""
        return [each.plain() if isinstance(each, Matrix) else each for each in self._stored]

    @property
    def held(self) -> list[Tensor]:
        """Each tensor once, as it lies in memory: a packed matrix as its pieces."""
        return [piece for each in self._stored for piece in (each.pieces if isinstance(each, Matrix) else [each])]

    @property
    def nbytes(self) -> int:
        """Bytes held, each stored tensor counted once."""
        return sum(tensor.numel() * tensor.element_size() for tensor in self.held)

    def in_file_layout(self, layout: Layout) -> Iterator[tuple[str, Tensor]]:
        """Every tensor by its name in the file, turned as the file has it: what saving writes."""
        for name in layout.shapes:
            layer, short = layout.place(name)
            yield name, _turned(layout, name, (self.outside if layer is None else self.layers[layer])[short])


def _turned(layout: Layout, name: str, tensor: Tensor) -> Tensor:
    return tensor.t() if layout.turned(name) else tensor
