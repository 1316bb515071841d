"""Architectures whose weights come from elsewhere: folders in Hugging Face's layout."""

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
