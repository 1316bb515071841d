"""BERT (Devlin et al., arXiv:1810.04805): an encoder, and heads on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import retrograd as rg
from retrograd import nn
from retrograd.errors import ShapeError
from retrograd.functions.tensor.tensor import Tensor
from retrograd.models.activations import activations, need_activation
from retrograd.models.causal_lm import (
    layers_of,
    merge_heads,
    need_mask,
    need_tokens,
    shared_dropout,
    split_heads,
)
from retrograd.models.config import LabelledConfig
from retrograd.models.pretrained import Pretrained
from retrograd.nn import functional as F
from retrograd.nn.module.parameter import Parameter


@dataclass(frozen=True)
class BERTConfig(LabelledConfig):
    """The settings of BERT, with the names and defaults of `transformers.BertConfig`.

    `OptionError` for sizes below 1, a width that the heads cannot share, and for what is not known
    or not supported: decoders, and other positions than absolute ones.

    >>> from retrograd.models import BERTConfig
    >>> BERTConfig(num_hidden_layers=2).intermediate_size
    3072
    """

    model_type = "bert"
    ignored: ClassVar[Mapping[str, str]] = {
        **LabelledConfig.ignored,
        **dict.fromkeys(
            ("directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_type",
             "pooler_num_fc_layers", "pooler_size_per_head"),
            "in files of Google, used by no model of transformers",
        ),
        "sbert_ce_default_activation_function": "what sentence-transformers does to the logits",
    }  # fmt: skip
    unsupported: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "position_embedding_type": ("absolute", None)
    }

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    hidden_act: str = "gelu"
    hidden_dropout_prob: float = 0.1
    attention_probs_dropout_prob: float = 0.1
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    initializer_range: float = 0.02
    layer_norm_eps: float = 1e-12
    classifier_dropout: float | None = None
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 0
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._positive(
            "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads",
            "intermediate_size", "max_position_embeddings", "type_vocab_size",
        )  # fmt: skip
        self._probabilities("hidden_dropout_prob", "attention_probs_dropout_prob")
        if self.classifier_dropout is not None:
            self._probabilities("classifier_dropout")
        self._shared("hidden_size", "num_attention_heads")
        need_activation(self.hidden_act, "hidden_act")
        each = self.hidden_size * (4 * self.hidden_size + 2 * self.intermediate_size)
        ends = self.hidden_size * (self.vocab_size + self.max_position_embeddings)
        self._count_weights(self.num_hidden_layers, each + ends // self.num_hidden_layers)

    def _norm(self) -> nn.LayerNorm:
        return nn.LayerNorm(self.hidden_size, self.layer_norm_eps)


class BERTEmbeddings(nn.Module):
    """The sum of vectors for words, positions and kinds of tokens, normalised."""

    def __init__(self, config: BERTConfig) -> None:
        size = config.hidden_size
        self.word_embeddings = nn.Embedding(config.vocab_size, size, config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, size)
        self.LayerNorm = config._norm()
        self.dropout = shared_dropout(config.hidden_dropout_prob)

    def forward(self, tokens: Tensor, kinds: Any, positions: Any) -> Tensor:
        x = self.word_embeddings(tokens) + self.token_type_embeddings(kinds)
        return self.dropout(self.LayerNorm(x + self.position_embeddings(positions)))


class BERTSelfAttention(nn.Module):
    """Attention of every token to every token."""

    def __init__(self, config: BERTConfig, dropout: nn.Module) -> None:
        size = config.hidden_size
        self.heads = config.num_attention_heads
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))
        self.dropout = dropout

    def forward(self, x: Tensor, mask: Any) -> Tensor:
        parts = (self.query, self.key, self.value)
        q, k, v = (split_heads(part(x), self.heads) for part in parts)
        options: dict[str, Any] = {}
        if self.training and isinstance(self.dropout, nn.Dropout):
            options = {"dropout_p": self.dropout.p, "generator": self.dropout.generator}
        return merge_heads(F.scaled_dot_product_attention(q, k, v, mask, **options))


class BERTOutput(nn.Module):
    """A linear map whose result is added to the residual, which is then normalised."""

    def __init__(self, config: BERTConfig, size: int, dropout: nn.Module) -> None:
        self.dense = nn.Linear(size, config.hidden_size)
        self.LayerNorm = config._norm()
        self.dropout = dropout

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.LayerNorm(self.dropout(self.dense(x)) + residual)


class BERTAttention(nn.Module):
    """Attention, added to its input."""

    def __init__(self, config: BERTConfig, dropouts: tuple[nn.Module, nn.Module]) -> None:
        self.self = BERTSelfAttention(config, dropouts[0])
        self.output = BERTOutput(config, config.hidden_size, dropouts[1])

    def forward(self, x: Tensor, mask: Any) -> Tensor:
        return self.output(self.self(x, mask), x)


class BERTDense(nn.Module):
    """A linear map and an activation."""

    def __init__(self, size: int, out: int, activation: str) -> None:
        self.dense = nn.Linear(size, out)
        self.activation = activation

    def forward(self, x: Tensor) -> Tensor:
        return activations()[self.activation](self.dense(x))


class BERTLayer(nn.Module):
    """Attention and MLP, each added to its input and normalised."""

    def __init__(self, config: BERTConfig, dropouts: tuple[nn.Module, nn.Module]) -> None:
        inner = config.intermediate_size
        self.attention = BERTAttention(config, dropouts)
        self.intermediate = BERTDense(config.hidden_size, inner, config.hidden_act)
        self.output = BERTOutput(config, inner, dropouts[1])

    def forward(self, x: Tensor, mask: Any) -> Tensor:
        x = self.attention(x, mask)
        return self.output(self.intermediate(x), x)


class BERTEncoder(nn.Module):
    """The layers."""

    def __init__(self, config: BERTConfig, dropout: nn.Module) -> None:
        dropouts = shared_dropout(config.attention_probs_dropout_prob), dropout
        count = config.num_hidden_layers
        self.layer = nn.ModuleList([BERTLayer(config, dropouts) for _ in range(count)])


class BERTModel(nn.Module):
    """Embeddings, encoder and pooler."""

    def __init__(self, config: BERTConfig, add_pooling_layer: bool) -> None:
        self.embeddings = BERTEmbeddings(config)
        self.encoder = BERTEncoder(config, self.embeddings.dropout)
        self.pooler = None
        if add_pooling_layer:
            self.pooler = BERTDense(config.hidden_size, config.hidden_size, "tanh")

    def forward(
        self, tokens: Any, attention_mask: Any, token_type_ids: Any, position_ids: Any,
        checkpointed: bool,
    ) -> Tensor:  # fmt: skip
        ids = need_tokens(tokens, "BERT")
        most = self.embeddings.position_embeddings.num_embeddings
        length = ids.shape[1]
        if isinstance(length, int) and length > most:
            raise ShapeError(
                f"{length} tokens are more than the {most} positions (max_position_embeddings) of "
                f"this BERT; give at most {most}, tokens[:, :{most}]"
            )
        mask = need_mask(attention_mask, length, "BERT")
        positions = rg.arange(length) if position_ids is None else position_ids
        kinds = rg.zeros((1, 1), dtype=rg.int64) if token_type_ids is None else token_type_ids
        x = self.embeddings(ids, kinds, positions)

        def call(layer: Any, x: Any, i: int) -> Any:
            return layer(x, mask), None

        return layers_of(list(self.encoder.layer), x, checkpointed, call)[0]


class BERTOutputs(NamedTuple):
    """What BERT gives: the states of all tokens `[B, T, hidden]`, and that of the first one behind
    the pooler `[B, hidden]`, or None without."""

    last_hidden_state: Any
    pooler_output: Any


class _OnBERT(Pretrained):
    """Base of the model and of its heads."""

    config_class = BERTConfig
    prefix = "bert"
    not_loaded: ClassVar[tuple[str, ...]] = (
        r"(bert\.)?embeddings\.(position_ids|token_type_ids)",
        r"cls\..*|classifier\..*|qa_outputs\..*",  # other heads
        r"(bert\.)?pooler\..*",
    )
    gradient_checkpointing = False
    pooled = True

    def _build(self, config: BERTConfig) -> None:
        self.bert = BERTModel(config, self.pooled)
        self._add_head(config)

    def _add_head(self, config: BERTConfig) -> None:
        """Make what stands on the encoder."""

    def _encoded(self, tokens: Any, mask: Any, kinds: Any, positions: Any) -> BERTOutputs:
        states = self.bert(tokens, mask, kinds, positions, self.gradient_checkpointing)
        pooler = self.bert.pooler
        return BERTOutputs(states, None if pooler is None else pooler(states[:, 0]))

    def gradient_checkpointing_enable(self) -> None:
        """Compute the activations inside each layer again for the gradient, instead of keeping
        them: memory for time."""
        self.gradient_checkpointing = True

    def gradient_checkpointing_disable(self) -> None:
        """Keep activations, as at first."""
        self.gradient_checkpointing = False


class BERT(_OnBERT):
    """The encoder of BERT with its pooler: `transformers.BertModel`.

    `model(tokens)` of `[B, T]` integers gives `(last_hidden_state, pooler_output)`,
    `[B, T, hidden]` and `[B, hidden]`. `attention_mask` `[B, T]` is 0 at padding, `token_type_ids`
    `[B, T]` tell the first text (0, the default) from the second, `position_ids` are by default
    0 ... T - 1. What `from_pretrained` gives is in evaluation. Weights of heads in a file are
    passed over.

    `ShapeError` for more tokens than positions, `IndexRangeError` for a token, kind or position
    that there is not.

    >>> import retrograd as rg
    >>> from retrograd.models import BERT, BERTConfig
    >>> config = BERTConfig(
    ...     vocab_size=11,
    ...     hidden_size=16,
    ...     num_hidden_layers=1,
    ...     num_attention_heads=2,
    ...     intermediate_size=32,
    ...     max_position_embeddings=8,
    ... )
    >>> states, pooled = BERT(config, generator=rg.random.Generator(0)).eval()([[1, 2, 3]])
    >>> states.shape, pooled.shape
    ((1, 3, 16), (1, 16))
    """

    architecture = "BertModel"

    def forward(
        self, tokens: Any, attention_mask: Any = None, token_type_ids: Any = None,
        position_ids: Any = None,
    ) -> BERTOutputs:  # fmt: skip
        return self._encoded(tokens, attention_mask, token_type_ids, position_ids)

    def _file_names(self) -> dict[str, str]:
        return {name: name.removeprefix("bert.") for name in self._weights()}


class _Predictions(nn.Module):
    """The head that predicts tokens; its matrix is that of the embeddings, if they are tied."""

    def __init__(self, config: BERTConfig) -> None:
        self.transform = _Transform(config)
        self.bias = Parameter(nn.init.zeros((config.vocab_size,)))
        self.decoder = None
        if not config.tie_word_embeddings:
            self.decoder = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, states: Tensor, embeddings: Any) -> Tensor:
        weight = embeddings if self.decoder is None else self.decoder.weight
        return F.linear(self.transform(states), weight, self.bias)


class _Transform(BERTDense):
    def __init__(self, config: BERTConfig) -> None:
        super().__init__(config.hidden_size, config.hidden_size, config.hidden_act)
        self.LayerNorm = config._norm()

    def forward(self, x: Tensor) -> Tensor:
        return self.LayerNorm(super().forward(x))


class _MaskedLMHead(nn.Module):
    def __init__(self, config: BERTConfig) -> None:
        self.predictions = _Predictions(config)


class BERTForMaskedLM(_OnBERT):
    """BERT that predicts tokens from all others: `transformers.BertForMaskedLM`.

    Arguments and errors are those of `BERT`; the result is logits `[B, T, vocab_size]`.

    >>> import retrograd as rg
    >>> from retrograd.models import BERTConfig, BERTForMaskedLM
    >>> config = BERTConfig(
    ...     vocab_size=11,
    ...     hidden_size=16,
    ...     num_hidden_layers=1,
    ...     num_attention_heads=2,
    ...     intermediate_size=32,
    ...     max_position_embeddings=8,
    ... )
    >>> BERTForMaskedLM(config, generator=rg.random.Generator(0)).eval()([[1, 2, 3]]).shape
    (1, 3, 11)
    """

    architecture = "BertForMaskedLM"
    pooled = False
    not_loaded = (
        *_OnBERT.not_loaded[::2],
        r"cls\.seq_relationship\..*|classifier\..*|qa_outputs\..*",
    )

    def _add_head(self, config: BERTConfig) -> None:
        self.cls = _MaskedLMHead(config)

    def _copies(self) -> dict[str, str]:
        found = {"cls.predictions.decoder.bias": "cls.predictions.bias"}
        if self.config.tie_word_embeddings:
            words = "bert.embeddings.word_embeddings.weight"
            found["cls.predictions.decoder.weight"] = words
        return found

    def forward(
        self, tokens: Any, attention_mask: Any = None, token_type_ids: Any = None,
        position_ids: Any = None,
    ) -> Tensor:  # fmt: skip
        states, _ = self._encoded(tokens, attention_mask, token_type_ids, position_ids)
        return self.cls.predictions(states, self.bert.embeddings.word_embeddings.weight)


class BERTForSequenceClassification(_OnBERT):
    """BERT that gives a text scores of classes: `transformers.BertForSequenceClassification`.

    Arguments and errors are those of `BERT`; the result is logits `[B, num_labels]`. A folder
    without a classifier is loaded with `strict=False`, which draws one.

    >>> import retrograd as rg
    >>> from retrograd.models import BERTConfig, BERTForSequenceClassification
    >>> config = BERTConfig(
    ...     vocab_size=11,
    ...     hidden_size=16,
    ...     num_hidden_layers=1,
    ...     num_attention_heads=2,
    ...     intermediate_size=32,
    ...     max_position_embeddings=8,
    ...     num_labels=3,
    ... )
    >>> model = BERTForSequenceClassification(config, generator=rg.random.Generator(0)).eval()
    >>> model([[1, 2, 3]]).shape
    (1, 3)
    """

    architecture = "BertForSequenceClassification"
    not_loaded = (_OnBERT.not_loaded[0], r"cls\..*|qa_outputs\..*")

    def _add_head(self, config: BERTConfig) -> None:
        p = config.classifier_dropout
        self.dropout = shared_dropout(config.hidden_dropout_prob if p is None else p)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)

    def forward(
        self, tokens: Any, attention_mask: Any = None, token_type_ids: Any = None,
        position_ids: Any = None,
    ) -> Tensor:  # fmt: skip
        _, pooled = self._encoded(tokens, attention_mask, token_type_ids, position_ids)
        return self.classifier(self.dropout(pooled))


class BERTForTokenClassification(_OnBERT):
    """BERT that gives every token scores of classes: `transformers.BertForTokenClassification`.

    Arguments and errors are those of `BERT`; the result is logits `[B, T, num_labels]`. A folder
    without a classifier is loaded with `strict=False`, which draws one.

    >>> import retrograd as rg
    >>> from retrograd.models import BERTConfig, BERTForTokenClassification
    >>> config = BERTConfig(
    ...     vocab_size=11,
    ...     hidden_size=16,
    ...     num_hidden_layers=1,
    ...     num_attention_heads=2,
    ...     intermediate_size=32,
    ...     max_position_embeddings=8,
    ...     num_labels=3,
    ... )
    >>> model = BERTForTokenClassification(config, generator=rg.random.Generator(0)).eval()
    >>> model([[1, 2, 3]]).shape
    (1, 3, 3)
    """

    architecture = "BertForTokenClassification"
    pooled = False
    not_loaded = (*_OnBERT.not_loaded[::2], r"cls\..*|qa_outputs\..*")

    def _add_head(self, config: BERTConfig) -> None:
        p = config.classifier_dropout
        self.dropout = shared_dropout(config.hidden_dropout_prob if p is None else p)
        self.classifier = nn.Linear(config.hidden_size, config.num_labels)

    def forward(
        self, tokens: Any, attention_mask: Any = None, token_type_ids: Any = None,
        position_ids: Any = None,
    ) -> Tensor:  # fmt: skip
        states, _ = self._encoded(tokens, attention_mask, token_type_ids, position_ids)
        return self.classifier(self.dropout(states))


class BERTSpans(NamedTuple):
    """Scores of every token as the first and as the last one of an answer, `[B, T]` each."""

    start_logits: Any
    end_logits: Any


class BERTForQuestionAnswering(_OnBERT):
    """BERT that says where in a text an answer is: `transformers.BertForQuestionAnswering`.

    Arguments and errors are those of `BERT`; the result is `(start_logits, end_logits)`, `[B, T]`
    each. A folder without this head is loaded with `strict=False`, which draws one.

    >>> import retrograd as rg
    >>> from retrograd.models import BERTConfig, BERTForQuestionAnswering
    >>> config = BERTConfig(
    ...     vocab_size=11,
    ...     hidden_size=16,
    ...     num_hidden_layers=1,
    ...     num_attention_heads=2,
    ...     intermediate_size=32,
    ...     max_position_embeddings=8,
    ... )
    >>> model = BERTForQuestionAnswering(config, generator=rg.random.Generator(0)).eval()
    >>> start, end = model([[1, 2, 3]])
    >>> start.shape, end.shape
    ((1, 3), (1, 3))
    """

    architecture = "BertForQuestionAnswering"
    pooled = False
    not_loaded = (*_OnBERT.not_loaded[::2], r"cls\..*|classifier\..*")

    def _add_head(self, config: BERTConfig) -> None:
        self.qa_outputs = nn.Linear(config.hidden_size, 2)

    def forward(
        self, tokens: Any, attention_mask: Any = None, token_type_ids: Any = None,
        position_ids: Any = None,
    ) -> BERTSpans:  # fmt: skip
        states, _ = self._encoded(tokens, attention_mask, token_type_ids, position_ids)
        scores = self.qa_outputs(states)
        return BERTSpans(scores[..., 0], scores[..., 1])
