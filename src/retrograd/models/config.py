"""What the configurations of all models have in common: `config.json` of Hugging Face folders."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from retrograd.errors import FormatError, OptionError, nearest
from retrograd.files import StrPath, read_bytes
from retrograd.memory_limit import check_new

# Settings that are no part of the function a model computes, with the reason.
_ABOUT_THE_FILE = "says where the file comes from"
_ABOUT_RESULTS = "says what transformers returns beside the logits"
_ABOUT_GENERATION = "an option of generate()"
IGNORED: dict[str, str] = {
    **dict.fromkeys(("transformers_version", "_name_or_path", "architectures", "_commit_hash",
                     "tokenizer_class", "auto_map", "finetuning_task", "task_specific_params",
                     "language", "name_or_path", "transformers.js_config",
                     "sentence_transformers", "is_llama_config"), _ABOUT_THE_FILE),
    **dict.fromkeys(("dtype", "torch_dtype"), "the dtype is that of the weights, or an argument"),
    **dict.fromkeys(("return_dict", "output_attentions", "output_hidden_states", "torchscript",
                     "use_cache", "return_dict_in_generate", "output_scores", "output_past",
                     "use_return_dict"), _ABOUT_RESULTS),
    **dict.fromkeys(("gradient_checkpointing", "chunk_size_feed_forward", "_attn_implementation",
                     "_attn_implementation_autoset", "attn_implementation", "use_bfloat16",
                     "_experts_implementation", "pretraining_tp", "low_cpu_mem_usage"),
                    "changes how it is computed, not what"),
    **dict.fromkeys(("max_length", "min_length", "max_new_tokens", "do_sample", "early_stopping",
                     "num_beams", "num_beam_groups", "diversity_penalty", "temperature", "top_k",
                     "top_p", "typical_p", "repetition_penalty", "length_penalty",
                     "no_repeat_ngram_size", "encoder_no_repeat_ngram_size", "bad_words_ids",
                     "num_return_sequences", "forced_bos_token_id", "forced_eos_token_id",
                     "remove_invalid_values", "exponential_decay_length_penalty",
                     "suppress_tokens", "begin_suppress_tokens", "prefix",
                     "decoder_start_token_id"), _ABOUT_GENERATION),
    **dict.fromkeys(("problem_type", "sep_token_id", "_num_labels", "cross_attention_hidden_size",
                     "tie_encoder_decoder"), "used by other models, or for losses alone"),
}  # fmt: skip
# Settings that ask for another function than these models compute, and the values that do not.
NOTHING: tuple[Any, ...] = (None, False, 0, {}, [])
COMMON_UNSUPPORTED: dict[str, tuple[Any, ...]] = {
    "is_encoder_decoder": NOTHING,
    "is_decoder": NOTHING,
    "add_cross_attention": NOTHING,
    "pruned_heads": NOTHING,
    "quantization_config": NOTHING,
}


@dataclass(frozen=True)
class Config:
    """Settings under the names that transformers gives them. Base of the configurations."""

    model_type: ClassVar[str]
    accepted_types: ClassVar[tuple[str, ...]] = ()  # of `config.json`, beside `model_type`
    aliases: ClassVar[Mapping[str, str]] = {}  # other names of fields
    ignored: ClassVar[Mapping[str, str]] = {}  # beside `IGNORED`, with the reason
    unsupported: ClassVar[Mapping[str, tuple[Any, ...]]] = {}  # and the values that are the default

    def __post_init__(self) -> None:
        for f in fields(self):
            value, kinds = getattr(self, f.name), re.sub(r"\[[^|]*\]", "", str(f.type)).split(" | ")
            if not any(_is_of_kind(value, kind) for kind in kinds):
                raise OptionError(
                    f"{f.name} of {type(self).__name__} is {' or '.join(kinds)}, not {value!r:.60}"
                )

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any], ignore: Iterable[str] = ()) -> Self:
        """The configuration of the settings in a `config.json`.

        Settings that do not change what is computed are passed over (`IGNORED` says why), so are
        those that are null and those in `ignore`. One that asks for what is not supported, or that
        is not known, is an `OptionError`.
        """
        known = {f.name: f for f in fields(cls)}
        types = (cls.model_type, *cls.accepted_types)
        if (found := settings.get("model_type", cls.model_type)) not in types:
            raise OptionError(
                f"{cls.__name__} is of models of the type {' or '.join(map(repr, types))}, these "
                f"settings are of the type {found!r}: rg.models.from_pretrained(folder) chooses "
                "the class by the type"
            )
        passed_over = {"model_type", *ignore, *IGNORED, *cls.ignored}
        values: dict[str, Any] = {}
        wrong = []
        allowed = {**COMMON_UNSUPPORTED, **cls.unsupported}
        for name, value in settings.items():
            own = cls.aliases.get(name, name)
            if own in known:
                if value is not None or "None" in str(known[own].type):
                    values[own] = value
            elif name in allowed and name not in ignore:
                if value not in allowed[name]:
                    wrong.append(f"{name}={value!r:.60} is not supported")
            elif value is not None and name not in passed_over:
                wrong.append(f"{name}={value!r:.60} is not known{nearest(name, known)}")
        if wrong:
            raise OptionError(
                f"{cls.__name__} cannot be made of these settings: {'; '.join(wrong)}. A setting "
                'that does not matter can be passed over: ignore=("name",)'
            )
        return cls(**values)

    @classmethod
    def from_pretrained(cls, folder: StrPath, ignore: Iterable[str] = ()) -> Self:
        """The configuration in the `config.json` of a folder."""
        try:
            return cls.from_dict(read_settings(folder), ignore)
        except OptionError as error:
            raise OptionError(f"{Path(folder) / 'config.json'}: {error}") from None

    def to_dict(self) -> dict[str, Any]:
        """The settings as `config.json` has them."""
        found = {f.name: _plain(getattr(self, f.name)) for f in fields(self)}
        return {**found, "model_type": self.model_type}

    def _positive(self, *names: str) -> None:
        """Refuse sizes below 1."""
        for name in names:
            value = getattr(self, name)
            if value < 1:
                raise OptionError(f"{name} of {type(self).__name__} is at least 1, not {value!r}")

    def _probabilities(self, *names: str) -> None:
        """Refuse what is no probability."""
        for name in names:
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise OptionError(
                    f"{name} of {type(self).__name__} is a probability, not {value!r}"
                )

    def _shared(self, size: str, heads: str) -> None:
        """Refuse a size that heads cannot share."""
        if getattr(self, size) % getattr(self, heads):
            raise OptionError(
                f"{size}, {getattr(self, size)}, is no multiple of {heads}, {getattr(self, heads)}"
            )

    _weights = 0  # how many there are, about

    def _count_weights(self, layers: int, each: int, most: int = 1000) -> None:
        """Note how many weights there are, so many in each layer; refuse more layers than a program
        should have."""
        if layers > most:
            raise OptionError(
                f"{type(self).__name__} has at most {most} layers, not {layers}: each is a "
                "part of the program"
            )
        object.__setattr__(self, "_weights", layers * each)

    def need_memory(self) -> None:
        """Refuse weights that do not fit into memory, before any are made."""
        check_new((self._weights,), 4, f"the weights of a {type(self).__name__}")


@dataclass(frozen=True)
class LabelledConfig(Config):
    """One of a classifier: `id2label` are the names of the `num_labels` classes, the other way
    round `label2id`."""

    num_labels: int = 2
    id2label: Mapping[str, str] | None = None

    ignored: ClassVar[Mapping[str, str]] = {"label2id": "id2label the other way round"}

    def __post_init__(self) -> None:
        super().__post_init__()
        self._positive("num_labels")

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any], ignore: Iterable[str] = ()) -> Self:
        """See `Config.from_dict`; the number of classes is that of their names."""
        found = {k: v for k, v in settings.items() if k != "label2id"}
        labels = found.get("id2label")
        if isinstance(labels, Mapping) and labels:
            found["num_labels"] = len(labels)
        return super().from_dict(found, ignore)

    def to_dict(self) -> dict[str, Any]:
        """The settings as `config.json` has them."""
        found = super().to_dict()
        count = found.pop("num_labels")
        labels = found["id2label"] or {str(i): f"LABEL_{i}" for i in range(count)}
        found["id2label"] = {str(i): name for i, name in labels.items()}
        found["label2id"] = {name: int(i) for i, name in labels.items()}
        return found


KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (float, int), "str": (str,), "list": (list, tuple),
    "tuple": (list, tuple), "Mapping": (Mapping,), "None": (type(None),),
}  # fmt: skip


def _is_of_kind(value: Any, kind: str) -> bool:
    """Whether a value is of a kind, as annotations of fields name them."""
    if kind == "bool" or isinstance(value, bool):
        return kind == "bool" and isinstance(value, bool)
    return isinstance(value, KINDS[kind])


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def read_settings(folder: StrPath) -> dict[str, Any]:
    """What stands in the `config.json` of a folder."""
    place = need_folder(folder)
    path = place / "config.json"
    if not path.exists():
        has = ", ".join(sorted(p.name for p in place.iterdir())[:8]) or "nothing"
        raise FileNotFoundError(
            2, f"no config.json is in this folder, which has {has}; give the folder that "
            "save_pretrained, of transformers or here, has written", str(place),
        )  # fmt: skip
    return read_json(path)


def read_json(path: Path) -> dict[str, Any]:
    """Settings by name in a file."""
    try:
        found = json.loads(read_bytes(path, "configuration"))
    except ValueError as error:
        raise FormatError(f"{path} is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise FormatError(f"{path} holds {type(found).__name__}, not settings by name")
    return found


def need_folder(folder: StrPath) -> Path:
    """The path of a folder that exists."""
    place = Path(folder)
    if place.is_dir():
        return place
    if place.exists():
        raise NotADirectoryError(
            20, "this is a file; give the folder it is in, with its config.json", str(place)
        )
    raise FileNotFoundError(
        2, "there is no such folder; models are loaded from folders on disk, not by the name of a "
        "hub: download one first, with `hf download NAME --local-dir FOLDER`", str(place),
    )  # fmt: skip
