"""How a checkpoint's tensors lie in memory: read once, upcast once, laid out the way the products want them.

Every two-dimensional weight is stored as (in, out), so that a layer reads `h @ w["mlp.down_proj.weight"]`; weights that
read the same input lie side by side in one matrix, so that one product serves them all (`project`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Layout:
    """What an architecture says about its tensors. All names are the checkpoint's, without its prefix.

    `shapes` are as in the file. `together` lists, by their names within a layer, the weights that lie side by side.
    `in_out` says that the file already stores matrices as (in, out), as GPT-2's does. `row_tables` are read by row and
    stay (row, channel): embeddings.
    """

    shapes: Mapping[str, tuple[int, ...]]
    prefixes: tuple[str, ...]
    layer_prefix: str
    layers: int
    together: tuple[tuple[str, ...], ...] = ()
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


class LayerWeights(dict[str, Tensor]):
    """One layer's tensors by the checkpoint's names; matrices are (in, out)."""

    def __init__(self) -> None:
        super().__init__()
        self.side_by_side: dict[tuple[str, ...], tuple[Tensor, list[int]]] = {}


def project(h: Tensor, w: LayerWeights, *names: str) -> tuple[Tensor, ...]:
    """h times each of the named weights, in one product: `q, k, v = project(h, w, "self_attn.q_proj", …)`.

    h: (b, t, in). Returns one (b, t, out) for each name.
    """
    matrix, widths = w.side_by_side[names]
    parts: tuple[Tensor, ...] = (h @ matrix).split(widths, dim=-1)
    return parts


class Weights:
    """All tensors of a model: `outside` the layers, and `layers[i]`.

    `parameters` lists each stored tensor once (training steps on these; the named ones may be views into them).
    """

    def __init__(self, layout: Layout, read: Callable[[str], Tensor], dtype: torch.dtype) -> None:
        """`read` gives a tensor of the file by its name without prefix."""
        self.outside: dict[str, Tensor] = {}
        self.layers = [LayerWeights() for _ in range(layout.layers)]
        self.parameters: list[Tensor] = []
        for layer in range(layout.layers):
            for group in layout.together:
                names = [f"{layout.layer_prefix}{layer}.{name}.weight" for name in group]
                if names[0] in layout.shapes:
                    self._side_by_side(layer, group, [_turned(layout, name, read(name)) for name in names], dtype)
        for name in layout.shapes:
            layer_of, short = layout.place(name)
            home = self.outside if layer_of is None else self.layers[layer_of]
            if short not in home:
                # A copy of its own: nothing goes on pointing into the mapped file.
                source = _turned(layout, name, read(name))
                home[short] = torch.empty(source.shape, dtype=dtype).copy_(source)
                self.parameters.append(home[short])

    def _side_by_side(self, layer: int, group: tuple[str, ...], sources: list[Tensor], dtype: torch.dtype) -> None:
        widths = [source.shape[1] for source in sources]
        matrix = torch.empty(sources[0].shape[0], sum(widths), dtype=dtype)
        for name, source, view in zip(group, sources, matrix.split(widths, dim=1), strict=True):
            self.layers[layer][f"{name}.weight"] = view.copy_(source)
        self.layers[layer].side_by_side[group] = (matrix, widths)
        self.parameters.append(matrix)

    @property
    def nbytes(self) -> int:
        """Bytes held, each stored tensor counted once."""
        return sum(tensor.nbytes for tensor in self.parameters)

    def in_file_layout(self, layout: Layout) -> Iterator[tuple[str, Tensor]]:
        """Every tensor by its name in the file, turned as the file has it: what saving writes."""
        for name in layout.shapes:
            layer, short = layout.place(name)
            yield name, _turned(layout, name, (self.outside if layer is None else self.layers[layer])[short])


def _turned(layout: Layout, name: str, tensor: Tensor) -> Tensor:
    return tensor.t() if layout.turned(name) else tensor
