"""Architectures whose weights come from elsewhere: folders in Hugging Face's layout."""

from typing import TYPE_CHECKING

from retrograd.lazy_import import attach as _attach
from retrograd.models.auto import from_pretrained, load_tokenizer
from retrograd.models.bert import (
    BERT,
    BERTConfig,
    BERTForMaskedLM,
    BERTForQuestionAnswering,
    BERTForSequenceClassification,
    BERTForTokenClassification,
)
from retrograd.models.gpt2 import GPT2, GPT2Config
from retrograd.models.llama import Llama, LlamaConfig
from retrograd.models.pretrained import Pretrained
from retrograd.models.resnet import ResNet, ResNetConfig

if not TYPE_CHECKING:  # a type checker knows all names there are
    __getattr__ = _attach(__name__)

__all__ = [
    "BERT",
    "BERTConfig",
    "BERTForMaskedLM",
    "BERTForQuestionAnswering",
    "BERTForSequenceClassification",
    "BERTForTokenClassification",
    "GPT2",
    "GPT2Config",
    "Llama",
    "LlamaConfig",
    "Pretrained",
    "ResNet",
    "ResNetConfig",
    "from_pretrained",
    "load_tokenizer",
]
