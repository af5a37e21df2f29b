"""What a model that writes on, token after token, has to keep: keys and values that grow, or a state that does not."""

from core.model import Model


def kept_bytes(model: Model, tokens: int, width: int = 4) -> list[int]:
    """Bytes that each layer keeps after so many tokens, `width` bytes a number: one entry a layer.

    Attention keeps a key and a value for each token that a later one can see: all of them, or with a local window of W
    the last W − 1. A recurrent mixer keeps its state and the last inputs of its convolution, however long the text.
    """
    return [model.kept(layer, tokens) * width for layer in range(model.layers)]
