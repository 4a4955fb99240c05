"""What adapters of `transformers` models need: tokenizer, network and numbers, with errors that say what to do."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from redraft.denoiser.chat import ChatTemplate
from redraft.denoiser.errors import UnsupportedModelError
from redraft.denoiser.vocabulary import Vocabulary

T = TypeVar("T")
QUANTIZATIONS = ("8bit", "4bit")


@dataclass(frozen=True)
class Pretrained:
    """An opened checkpoint: its config as it stands in the file, its fast tokenizer, its network on a device."""

    name: str
    config: Mapping[str, Any]
    tokenizer: Any
    network: Any

    @property
    def template(self) -> ChatTemplate:
        """The tokenizer's chat template, which may be none: it says so when it is used."""
        return ChatTemplate(self.tokenizer)

    def number(self, *names: str, default: int) -> int:
        """The first of the config's values that is there."""
        for name in names:
            value = self.config.get(name, getattr(self.network.config, name, None))
            if isinstance(value, int) and not isinstance(value, bool):
                return value
        return default

    def token(self, key: str, spelling: str) -> int:
        """A token id by the config's `key`, else by its spelling; raises `UnsupportedModelError` without either."""
        value = self.config.get(key, getattr(self.network.config, key, None))
        found = [value] if isinstance(value, int) else self.known([spelling])
        if not found:
            raise UnsupportedModelError(
                f"{self.name!r} names no {key} and its tokenizer has no {spelling}: is it a checkpoint of this family?"
            )
        return int(found[0])

    def known(self, spellings: Iterable[str]) -> list[int]:
        """Ids of those of the spellings that are tokens."""
        vocabulary = self.tokenizer.get_vocab()
        return [vocabulary[spelling] for spelling in spellings if spelling in vocabulary]

    def begin(self) -> list[int]:
        """The token that begins a sequence, where the tokenizer has one."""
        begin = self.tokenizer.bos_token_id
        return [] if begin is None else [begin]

    def vocabulary(self, *, mask_id: int | None, eos: bool = False) -> Vocabulary:
        """The bytes of every token; with `eos` a text ends in the tokenizer's EOS and is padded behind it."""
        text = self.network.config.get_text_config()
        end = self.tokenizer.eos_token_id if eos else None
        pad = self.tokenizer.pad_token_id if eos else None
        return Vocabulary.from_tokenizer(
            self.tokenizer.backend_tokenizer,
            mask_id=mask_id,
            eos_id=end,
            pad_id=None if pad == mask_id else pad,
            size=self.number("vocab_size", default=int(getattr(text, "vocab_size", 0))),
        )


def open_pretrained(
    name: str,
    auto: str,
    *,
    device: torch.device,
    dtype: torch.dtype,
    trust_remote_code: bool = False,
    quantization: str | None = None,
    device_map: Any = None,
    tokenizer: str | None = None,
    slow: str | None = None,
) -> Pretrained:
    """Open a checkpoint with the auto class `auto` ("AutoModel", ...), or with its own code where that is trusted.

    `tokenizer` is taken where the checkpoint has none, `slow` names the class that reads the vocabulary of one
    that only has a slow tokenizer. Raises `UnsupportedModelError` for whatever cannot be loaded.
    """
    config = read_config(name)
    own = find_tokenizer(name, tokenizer, slow, trust_remote_code)
    more: dict[str, Any] = {"dtype": dtype}
    if quantization is not None:
        more["quantization_config"] = quantization_config(quantization)
        device_map = {"": device} if device_map is None else device_map
    if device_map is not None:
        more["device_map"] = device_map
    network = attempt(
        f"the weights of {name!r}", lambda: _network(name, auto, config, trust_remote_code, more)
    )
    return Pretrained(name, config, own, network if device_map is not None else network.to(device))


def read_config(name: str) -> Mapping[str, Any]:
    """The config.json of a folder or a name, without running any code of the model's."""
    from transformers import PretrainedConfig

    try:
        config: Mapping[str, Any] = PretrainedConfig.get_config_dict(name)[0]
    except Exception as error:
        raise UnsupportedModelError(
            f"{name!r} is neither 'embedded', nor a folder with a model, nor a name that can be fetched: "
            f"{first_line(error)}"
        ) from error
    if not config:
        raise UnsupportedModelError(f"{name!r} has no config.json: name a folder that a model was saved to")
    return config


def find_tokenizer(name: str, other: str | None, slow: str | None, trust: bool) -> Any:
    """The fast tokenizer of a checkpoint; raises `UnsupportedModelError` where there is none to read bytes off."""
    import transformers

    def read(source: str) -> Any:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            source, trust_remote_code=trust and source == name
        )
        if len(tokenizer.get_vocab()) <= len(tokenizer.all_special_tokens):
            raise UnsupportedModelError(f"the tokenizer of {source!r} is empty: its files are missing")
        return tokenizer

    def own() -> Any:
        try:
            return read(name)
        except Exception:
            if other is None:
                raise
            return read(other)

    found = attempt(f"the tokenizer of {name!r}", own)
    if getattr(found, "backend_tokenizer", None) is None and slow is not None:
        template = getattr(found, "chat_template", None)
        found = attempt(
            f"the vocabulary of {name!r}", lambda: getattr(transformers, slow).from_pretrained(name)
        )
        found.chat_template = template or found.chat_template
    if getattr(found, "backend_tokenizer", None) is None:
        raise UnsupportedModelError(
            f"{name!r} has no fast tokenizer, so its tokens' bytes are not known: convert it"
        )
    return found


def quantization_config(quantization: str) -> Any:
    """What `transformers` takes for "8bit" or "4bit"; raises `UnsupportedModelError` where it cannot be had."""
    if quantization not in QUANTIZATIONS:
        raise UnsupportedModelError(
            f"quantization is {quantization!r}: use {' or '.join(map(repr, QUANTIZATIONS))}, or leave it out"
        )
    if importlib.util.find_spec("bitsandbytes") is None:
        raise UnsupportedModelError(
            f"quantization {quantization!r} needs bitsandbytes, which is not installed: install it, or leave this out"
        )
    from transformers import BitsAndBytesConfig

    return BitsAndBytesConfig(**{f"load_in_{quantization}": True})  # type: ignore[no-untyped-call]


def attempt(what: str, call: Callable[[], T]) -> T:
    """The call's answer; whatever goes wrong in it is an `UnsupportedModelError` that begins with `what`."""
    try:
        return call()
    except UnsupportedModelError:
        raise
    except Exception as error:
        raise UnsupportedModelError(f"{what} cannot be loaded: {first_line(error)}") from error


def first_line(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {(str(error).strip() or 'no reason given').splitlines()[0]}"


def _network(name: str, auto: str, config: Mapping[str, Any], trust: bool, more: Mapping[str, Any]) -> Any:
    import transformers

    auto_map = config.get("auto_map") or {}
    reference = auto_map.get(auto) or next(
        (value for key, value in auto_map.items() if key.startswith("AutoModel")), None
    )
    if trust and reference is not None:
        return _remote(name, reference, more)
    return getattr(transformers, auto).from_pretrained(name, **more)


def _remote(name: str, reference: str, more: Mapping[str, Any]) -> Any:
    """A network by its own code; code written for `transformers` 4 is given what version 5 asks of it."""
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    found: Any = get_class_from_dynamic_module(reference, name)
    if not hasattr(found, "all_tied_weights_keys"):
        found.all_tied_weights_keys = {}
    tie = found.tie_weights
    if tie.__code__.co_argcount == 1 and not tie.__code__.co_flags & 0x08:  # takes self alone
        found.tie_weights = lambda self, *_, **__: tie(self)
    network = found.from_pretrained(name, trust_remote_code=True, **more)
    for key, value in (("use_cache", False), ("use_return_dict", True)):
        if not hasattr(network.config, key):
            setattr(network.config, key, value)
    return network
