"""config.json, read strictly: a setting is used, or must have the one value that is implemented, or does not matter.

Anything else is refused by its name, before a weight is read.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import TokenwalkError, UnsupportedSetting

# Settings that change no forward pass: names, training, generation, storage. `layer_types` is not among them.
_INERT = re.compile(
    r"_.*|architectures|auto_map|transformers_version|torch_dtype|dtype|use_cache|cache_implementation|"
    r"model_type|tokenizer_class|init(ializer)?_.*|.*_(token|token_id|dropout|pdrop|dropout_prob)|"
    r"output_(hidden_states|attentions|router_logits)|return_dict.*|task_specific_params|summary_.*|n_ctx|"
    r"router_aux_loss_coef|pretraining_tp|is_(encoder_)?decoder|id2label|label2id|problem_type|"
    r"finetuning_task|torchscript|pruned_heads|chunk_size_feed_forward|unsloth_.*|transformers_js_config|is_llama_config"
)
_REQUIRED = object()


@dataclass(frozen=True)
class Rope:
    """One rotary embedding: base, linear scaling factor, and the share of each head's channels that turn."""

    theta: float
    factor: float = 1.0
    partial: float = 1.0


def _constant(name: str) -> float:
    """JSON's extra numbers: a limit may be infinite, nothing may be NaN."""
    if name == "NaN":
        raise ValueError("a setting is NaN")
    return float(name)


class Config:
    """One model's settings. Whatever nobody read is refused by `finish`."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self._read: set[str] = set()

    @classmethod
    def from_folder(cls, folder: Path) -> "Config":
        """Raises TokenwalkError where there is no config.json, or none that can be read."""
        path = folder / "config.json"
        try:
            raw = json.loads(path.read_text("utf-8"), parse_constant=_constant)
        except FileNotFoundError:
            raise TokenwalkError(f"There is no config.json in {folder}: it is not a model folder.") from None
        except (OSError, ValueError, RecursionError) as error:
            raise TokenwalkError(f"{path} cannot be read: {error}.") from None
        if not isinstance(raw, dict) or not isinstance(raw.get("model_type"), str):
            raise TokenwalkError(f"{path} names no model_type: it is not a model's config.")
        return cls(raw)

    def get(self, name: str, default: Any = _REQUIRED) -> Any:
        """The setting's value; the default where it is absent or null."""
        self._read.add(name)
        value = self.raw.get(name)
        if value is not None:
            return value
        if default is _REQUIRED:
            raise UnsupportedSetting(f"The config has no “{name}”, which this architecture needs.")
        return default

    def require(self, name: str, *allowed: Any) -> None:
        """The setting, where it is there and not null, has one of the values that are implemented."""
        value = self.get(name, None)
        if value is not None and value not in allowed:
            known = " or ".join(json.dumps(each) for each in allowed) or "none"
            raise UnsupportedSetting(f"The setting {name} = {json.dumps(value)} is not implemented (only {known}).")

    def ignore(self, *names: str) -> None:
        """Settings that have no effect in this architecture, whatever they say."""
        self._read.update(names)

    def rope(
        self,
        default_theta: float,
        *,
        layer_type: str | None = None,
        old_theta: str = "rope_theta",
        default_partial: float = 1.0,
    ) -> Rope:
        """A rotary embedding, by the new names (`rope_parameters`) or the old (`rope_theta`, `rope_scaling`).

        `layer_type` picks one of several embeddings in the same config. Raises for a rope type that is not written.
        """
        new = self.get("rope_parameters", {})
        old = self.get("rope_scaling", {}) if old_theta == "rope_theta" else {}
        found = {**old, **(new.get(layer_type) or {} if layer_type in new else new)}
        kind = found.get("rope_type") or found.get("type") or "default"
        if kind not in ("default", "linear"):
            raise UnsupportedSetting(f"The setting rope_type = “{kind}” is not implemented (only default, linear).")
        return Rope(
            theta=float(found.get("rope_theta") or self.get(old_theta, default_theta)),
            factor=float(found["factor"]) if kind == "linear" else 1.0,
            partial=float(found.get("partial_rotary_factor") or self.get("partial_rotary_factor", default_partial)),
        )

    def finish(self) -> None:
        """Raises for the first setting that nobody read and that could change the forward pass."""
        for name, value in self.raw.items():
            inert = value is None or value is False or value == {} or value == []
            if name not in self._read and not inert and not _INERT.fullmatch(name):
                raise UnsupportedSetting(f"The setting {name} = {json.dumps(value)} is not implemented.")
