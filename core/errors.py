"""The errors that a person can cause, each with one sentence that says what to do about it."""


class TokenwalkError(ValueError):
    """Bad input: a text, a name, a spec, a folder or a config that cannot be used. `str(error)` is one sentence."""


class UnsupportedSetting(TokenwalkError):
    """A config.json asks for something that the hand-written forward pass does not do."""


class BadWeights(TokenwalkError):
    """A weight file lacks a tensor, has one too many, or has one in another shape."""


class Unreachable(TokenwalkError):
    """The model hub cannot be reached, or does not hand the files over."""
