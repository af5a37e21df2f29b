"""One file an architecture; the file is the diagram. `ARCHITECTURES` finds it by config.json's model_type."""

from core.model import Model
from core.models.gemma3 import Gemma3
from core.models.gpt2 import GPT2
from core.models.granite import Granite
from core.models.qwen3 import Qwen3
from core.models.qwen3_5 import Qwen35

ARCHITECTURES: dict[str, type[Model]] = {
    model_type: architecture
    for architecture in (GPT2, Qwen3, Granite, Gemma3, Qwen35)
    for model_type in architecture.model_types
}
