"""The model, and the tokenizer, in a folder whatever it is."""

from __future__ import annotations

from typing import Any

from retrograd.errors import ArgumentError, FormatError, OptionError, nearest
from retrograd.files import StrPath, read_bytes
from retrograd.models.bert import (
    BERT,
    BERTForMaskedLM,
    BERTForQuestionAnswering,
    BERTForSequenceClassification,
    BERTForTokenClassification,
)
from retrograd.models.config import need_folder, read_settings
from retrograd.models.gpt2 import GPT2
from retrograd.models.llama import Llama
from retrograd.models.pretrained import Pretrained
from retrograd.models.resnet import ResNet

BY_ARCHITECTURE: dict[str, type[Pretrained]] = {
    "BertModel": BERT,
    "BertForMaskedLM": BERTForMaskedLM,
    "BertForPreTraining": BERTForMaskedLM,
    "BertForSequenceClassification": BERTForSequenceClassification,
    "BertForTokenClassification": BERTForTokenClassification,
    "BertForQuestionAnswering": BERTForQuestionAnswering,
}
BY_TYPE: dict[str, type[Pretrained]] = {
    "bert": BERT,
    "gpt2": GPT2,
    "llama": Llama,
    "mistral": Llama,
    "qwen2": Llama,
    "qwen3": Llama,
    "phi3": Llama,
    "gemma": Llama,
    "resnet": ResNet,
}


def from_pretrained(folder: StrPath, **options: Any) -> Any:
    """The model in a folder, of the class that `architectures` and `model_type` of its
    `config.json` say; see `Pretrained.from_pretrained` for options, the layout and errors.

    `OptionError` for a type that there is not.

    >>> import retrograd as rg, tempfile
    >>> config = rg.models.GPT2Config(vocab_size=11, n_positions=8, n_embd=16, n_layer=1, n_head=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rg.models.GPT2(config).save_pretrained(folder)
    ...     type(rg.models.from_pretrained(folder)).__name__
    'GPT2'
    """
    settings = read_settings(folder)
    named = [BY_ARCHITECTURE.get(str(a)) for a in settings.get("architectures") or []]
    kind = settings.get("model_type")
    found = next((cls for cls in named if cls is not None), BY_TYPE.get(str(kind)))
    if found is None:
        raise OptionError(
            f"{folder} holds a model of the type {kind!r}, which is none of "
            f"{', '.join(BY_TYPE)}{nearest(str(kind), BY_TYPE)}"
        )
    return found.from_pretrained(folder, **options)


def load_tokenizer(folder: StrPath) -> Any:
    """The tokenizer in the `tokenizer.json` of a folder, a `tokenizers.Tokenizer`:
    `load_tokenizer(folder).encode("text").ids`, `.decode(ids)`.

    Needs the package `tokenizers`, an `ArgumentError` where it is not installed. A folder without
    the file is a `FileNotFoundError`, one that is damaged a `FormatError`.

    >>> from retrograd.models import load_tokenizer
    >>> load_tokenizer("/nowhere")
    Traceback (most recent call last):
    FileNotFoundError: ...there is no such folder...
    """
    path = need_folder(folder) / "tokenizer.json"
    content = read_bytes(path, "tokenizer")
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise ArgumentError(
            "load_tokenizer needs the package tokenizers: pip install 'retrograd[text]'"
        ) from None
    try:
        return Tokenizer.from_str(content.decode())
    except Exception as error:  # of the library, which raises nothing more specific
        raise FormatError(f"{path} is no tokenizer: {error}") from None
