"""The named places that architectures share. A name means one thing in every model.

Axes leave out the batch. Each model's own catalogue lists these, and its own, in execution order.
"""

from core.specs import ATTENTION, DELTANET, LOCAL_ATTENTION, MAMBA2
from core.taps import Site

STREAM = ("token", "width")
_ANY_ATTENTION = (ATTENTION, LOCAL_ATTENTION)

EMBEDDING = Site("embedding", STREAM, "the residual stream before layer 0", per_layer=False)
BEFORE = Site("residual.before", STREAM, "the residual stream before the layer")
MIXER_INPUT = Site("mixer.input", STREAM, "the stream after the layer's first norm: what the mixer reads")

QUERY = Site("attention.query", ("head", "query", "channel"), "queries, position included", kinds=_ANY_ATTENTION)
KEY = Site("attention.key", ("kv head", "key", "channel"), "keys, position included", kinds=_ANY_ATTENTION)
VALUE = Site("attention.value", ("kv head", "key", "channel"), "values", kinds=_ANY_ATTENTION)
PATTERN = Site(
    "attention.pattern",
    ("head", "query", "key"),
    "how much each token reads from each token: 0 to 1, a row sums to 1",
    kinds=_ANY_ATTENTION,
)
ATTENTION_SITES = (QUERY, KEY, VALUE, PATTERN)

HEADS = Site(
    "mixer.heads",
    ("token", "head", "channel"),
    "what each head hands to the output projection",
    switchable=True,
)
MIXER_WRITE = Site("mixer.write", STREAM, "what the mixer adds to the stream", switchable=True)
MIXER_BIAS = Site("mixer.bias", ("width",), "the output projection's bias: added even with the mixer switched off")
BETWEEN = Site("residual.between", STREAM, "the stream after the mixer, before the FFN")
FFN_INPUT = Site("ffn.input", STREAM, "the stream after the layer's second norm: what the FFN reads")
NEURONS = Site("ffn.neurons", ("token", "neuron"), "each neuron's activation, its gate included", switchable=True)
FFN_WRITE = Site("ffn.write", STREAM, "what the FFN adds to the stream", switchable=True)
FFN_BIAS = Site("ffn.bias", ("width",), "the down projection's bias: added even with the FFN switched off")
AFTER = Site("residual.after", STREAM, "the residual stream after the layer")

FINAL_NORM = Site("final.norm", STREAM, "the stream after the last norm", per_layer=False)
LOGITS = Site("logits", ("token", "vocabulary"), "a score for each token that may come next", per_layer=False)

MAMBA2_SITES = (
    Site("mamba2.x", ("head", "token", "channel"), "values: what is written into the state", kinds=(MAMBA2,)),
    Site("mamba2.B", ("group", "token", "state"), "B: the direction that a token writes under", kinds=(MAMBA2,)),
    Site("mamba2.C", ("group", "token", "state"), "C: the direction that a token reads by", kinds=(MAMBA2,)),
    Site("mamba2.dt", ("head", "token"), "dt: how strongly a token is written, after softplus", kinds=(MAMBA2,)),
    Site("mamba2.decay", ("head", "token"), "exp(dt · A): how much of the state a token keeps", kinds=(MAMBA2,)),
    Site("mamba2.map", ("head", "token", "token read"), "C · decay · dt · B: signed; D · x is apart", kinds=(MAMBA2,)),
    Site("mamba2.y", ("head", "token", "channel"), "map @ x + D · x: before gate and norm", kinds=(MAMBA2,)),
    Site("mamba2.gate", ("token", "inner width"), "silu(z): what y is multiplied by, before the norm", kinds=(MAMBA2,)),
)

DELTANET_SITES = (
    Site("deltanet.query", ("head", "token", "channel"), "queries, L2-normalised, times 1/√d", kinds=(DELTANET,)),
    Site("deltanet.key", ("head", "token", "channel"), "keys, L2-normalised", kinds=(DELTANET,)),
    Site("deltanet.value", ("head", "token", "channel"), "values", kinds=(DELTANET,)),
    Site("deltanet.alpha", ("head", "token"), "α: how much of the state a token keeps", kinds=(DELTANET,)),
    Site("deltanet.beta", ("head", "token"), "β: how much of the old value a token replaces", kinds=(DELTANET,)),
    Site("deltanet.map", ("head", "token", "token read"), "signed, the erase term included", kinds=(DELTANET,)),
    Site("deltanet.y", ("head", "token", "channel"), "map @ values: before norm and gate", kinds=(DELTANET,)),
    Site("deltanet.gate", ("token", "head", "channel"), "silu(z): multiplies y after its norm", kinds=(DELTANET,)),
)
ATTENTION_GATE = Site(
    "attention.gate", ("token", "head", "channel"), "how open the output gate is: 0 to 1", kinds=_ANY_ATTENTION
)


def in_order(*mixer: Site, embedding: tuple[Site, ...] = (), biased: bool = False) -> tuple[Site, ...]:
    """A model's catalogue in execution order: what all models have, around the sites of its own mixers.

    `embedding`: what the stream is added up from. `biased`: whether the output projections have biases.
    """
    return (
        *embedding,
        EMBEDDING,
        BEFORE,
        MIXER_INPUT,
        *mixer,
        HEADS,
        MIXER_WRITE,
        *((MIXER_BIAS,) if biased else ()),
        BETWEEN,
        FFN_INPUT,
        NEURONS,
        FFN_WRITE,
        *((FFN_BIAS,) if biased else ()),
        AFTER,
        FINAL_NORM,
        LOGITS,
    )
