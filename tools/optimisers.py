"""Muon (Jordan et al. 2024) for matrices, AdamW for everything else.

Muon makes each matrix's update orthogonal: all directions of the matrix learn at one speed. Matrices that lie side by
side in memory are made orthogonal one by one.
"""

from collections import defaultdict
from typing import Any

import torch
from torch import Tensor

from core.model import Model

SLOW = 0.1  # of the rate, for GPT-2's position table, which begins as something already
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)


def orthogonal(x: Tensor) -> Tensor:
    """The orthogonal matrices nearest to a stack of them (matrix, in, out), about: five Newton-Schulz steps."""
    a, b, c = NEWTON_SCHULZ
    tall = x.shape[-2] > x.shape[-1]
    x = x.transpose(-1, -2) if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.transpose(-1, -2)
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.transpose(-1, -2) if tall else x


class Muon:
    """Momentum, made orthogonal. `matrices` are pairs of a parameter (in, out) and the widths of its parts."""

    def __init__(self, matrices: list[tuple[Tensor, list[int]]], momentum: float = 0.95) -> None:
        self.matrices = matrices
        self.momentum = momentum
        self.moved = [torch.zeros_like(matrix) for matrix, _ in matrices]

    @torch.no_grad()
    def step(self, rate: float, decay: float = 0.0) -> None:
        by_shape: dict[tuple[int, ...], list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for (matrix, widths), moved in zip(self.matrices, self.moved, strict=True):
            if matrix.grad is None:
                continue
            moved.lerp_(matrix.grad, 1 - self.momentum)
            update = matrix.grad.lerp(moved, self.momentum)
            for part, target in zip(update.split(widths, 1), matrix.split(widths, 1), strict=True):
                by_shape[tuple(part.shape)].append((part, target))
        for shape, parts in by_shape.items():
            scale = max(1.0, shape[1] / shape[0]) ** 0.5
            for update, (_, target) in zip(orthogonal(torch.stack([p for p, _ in parts])), parts, strict=True):
                target.mul_(1 - rate * decay).sub_(update, alpha=rate * scale)


def matrices(model: Model) -> list[tuple[Tensor, list[int]]]:
    """Every matrix of the layers, stored once, with the widths of the parts that are matrices of their own."""
    found = []
    for layer in model.weights.layers:
        for names, matrix in layer.matrices.items():
            parts = [_parts(model, name, width) for name, width in zip(names, matrix.widths, strict=True)]
            found.append((matrix.plain(), [width for part in parts for width in part]))
    return found


def _parts(model: Any, name: str, width: int) -> list[int]:
    if name == "mamba.in_proj":
        return [model.inner, model.inner, *[model.groups * model.state] * 2, model.mamba_heads]
    if name == "linear_attn.in_proj_qkv":
        return [model.key_heads * model.key_dim] * 2 + [model.value_heads * model.value_dim]
    return {"shared_mlp.input_linear": [width // 2] * 2, "attn.c_attn": [width // 3] * 3}.get(name, [width])


class Optimiser:
    """Both, with one dial: `share` of the full rates."""

    def __init__(self, model: Model, muon_rate: float, adam_rate: float, table_share: float = 1.0) -> None:
        self.parameters = model.weights.parameters
        self.muon_rate, self.adam_rate = muon_rate, adam_rate
        self.muon = Muon(matrices(model))
        taken = {id(matrix) for matrix, _ in self.muon.matrices}
        rest = [parameter for parameter in self.parameters if id(parameter) not in taken]
        slow = [parameter for parameter in rest if parameter is model.weights.outside.get("wpe.weight")]
        rows = [parameter for parameter in rest if parameter is model.weights.outside.get("embed_tokens.weight")]
        rows = rows if table_share != 1.0 else []
        fast = [parameter for parameter in rest if all(parameter is not each for each in [*slow, *rows])]
        groups = [{"params": fast, "share": 1.0}, {"params": slow, "share": SLOW}]
        groups += [{"params": rows, "share": table_share}] if rows else []
        self.adam = torch.optim.AdamW(groups, lr=adam_rate, betas=(0.9, 0.95), weight_decay=0.0)

    def step(self, share: float) -> None:
        self.muon.step(self.muon_rate * share, decay=0.1)
        for group in self.adam.param_groups:
            group["lr"] = self.adam_rate * share * group["share"]
        self.adam.step()
        for parameter in self.parameters:
            parameter.grad = None

    def state(self) -> dict[str, Any]:
        return {"moved": self.muon.moved, "adam": self.adam.state_dict()}

    def load(self, state: dict[str, Any]) -> None:
        for mine, saved in zip(self.muon.moved, state["moved"], strict=True):
            mine.copy_(saved)
        self.adam.load_state_dict(state["adam"])
