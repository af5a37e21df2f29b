"""The models and every measurement. Nothing in here imports Streamlit or Altair.

from core import load

model = load("smollm2-135m")
run = model.run("The capital of France is", record=["attention.pattern:3"], off=["mixer:5"])
run.top(3), run.pieces, run.values["attention.pattern"][3]
"""

from core import threads  # noqa: F401 (before torch is imported, which reads its setting then)
from core.errors import TokenwalkError
from core.run import Candidate, Run
from core.weights import load

__all__ = ["Candidate", "Run", "TokenwalkError", "load"]
