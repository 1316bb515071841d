"""BERT and its heads against plain NumPy."""

from dataclasses import replace

import numpy as np
import pytest

import retrograd as rg
from retrograd.models import (
    BERT,
    BERTConfig,
    BERTForMaskedLM,
    BERTForQuestionAnswering,
    BERTForSequenceClassification,
    BERTForTokenClassification,
)
from tests.models import numpy_models
from tests.models.conftest import BERT_SIZES, MASK, TOKENS, arrays, randomized

KINDS = np.where(np.arange(7) > 3, 1, 0)[None].repeat(3, 0)


def test_states_and_pooled():
    model = randomized(BERT(BERT_SIZES, dtype=rg.float64))
    states, pooled = model(TOKENS, token_type_ids=KINDS)
    s = arrays(model)
    wanted = [numpy_models.bert(BERT_SIZES, s, t, k) for t, k in zip(TOKENS, KINDS, strict=True)]
    np.testing.assert_allclose(states.numpy(), wanted, rtol=0, atol=1e-12)
    pooled_ = [numpy_models.bert_pooled(s, x) for x in wanted]
    np.testing.assert_allclose(pooled.numpy(), pooled_, rtol=0, atol=1e-12)
    model.to(rg.float32)
    np.testing.assert_allclose(model(TOKENS, None, KINDS)[0].numpy(), wanted, rtol=0, atol=1e-5)


def test_padding_is_not_looked_at():
    model = randomized(BERT(BERT_SIZES, dtype=rg.float64))
    states, _ = model(TOKENS, MASK, position_ids=np.maximum(np.cumsum(MASK, 1) - 1, 0))
    s = arrays(model)
    for row, mask, tokens in zip(states.numpy(), MASK.astype(bool), TOKENS, strict=True):
        wanted = numpy_models.bert(BERT_SIZES, s, tokens[mask], np.zeros(mask.sum(), int))
        np.testing.assert_allclose(row[mask], wanted, rtol=0, atol=1e-12)


def test_heads():
    masked = randomized(BERTForMaskedLM(BERT_SIZES, dtype=rg.float64))
    s = arrays(masked)
    states = numpy_models.bert(BERT_SIZES, s, TOKENS[0], np.zeros(7, int))
    wanted = numpy_models.bert_tokens(BERT_SIZES, s, states)
    np.testing.assert_allclose(masked(TOKENS[:1]).numpy()[0], wanted, rtol=0, atol=1e-12)
    classifier = randomized(BERTForSequenceClassification(BERT_SIZES, dtype=rg.float64))
    s = arrays(classifier)
    pooled = numpy_models.bert_pooled(
        s, numpy_models.bert(BERT_SIZES, s, TOKENS[0], np.zeros(7, int))
    )
    wanted = numpy_models.linear(pooled, s, "classifier")
    np.testing.assert_allclose(classifier(TOKENS[:1]).numpy()[0], wanted, rtol=0, atol=1e-12)
    states = states_of(
        tagger := randomized(BERTForTokenClassification(BERT_SIZES, dtype="float64"))
    )
    wanted = numpy_models.linear(states, arrays(tagger), "classifier")
    np.testing.assert_allclose(tagger(TOKENS[:1]).numpy()[0], wanted, rtol=0, atol=1e-12)
    states = states_of(spans := randomized(BERTForQuestionAnswering(BERT_SIZES, dtype="float64")))
    wanted = numpy_models.linear(states, arrays(spans), "qa_outputs")
    start, end = spans(TOKENS[:1])
    np.testing.assert_allclose(start.numpy()[0], wanted[:, 0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(end.numpy()[0], wanted[:, 1], rtol=0, atol=1e-12)


def states_of(model):
    return numpy_models.bert(BERT_SIZES, arrays(model), TOKENS[0], np.zeros(7, int))


def test_an_untied_head():
    model = randomized(BERTForMaskedLM(replace(BERT_SIZES, tie_word_embeddings=False)))
    assert "cls.predictions.decoder.weight" in model.state_dict()
    slopes = rg.grad(lambda m: (m(TOKENS) ** 2).sum())(model)
    assert slopes.cls.predictions.decoder.weight.numpy().any()


@pytest.mark.slow
def test_dropout_and_checkpointing_while_training():
    model = randomized(
        BERTForSequenceClassification(replace(BERT_SIZES, num_hidden_layers=1))
    ).train()
    a, b = model(TOKENS).numpy(), model(TOKENS).numpy()
    assert (a != b).any()
    model.eval()
    plain = rg.grad(lambda m: m(TOKENS).sum())(model)
    model.gradient_checkpointing_enable()
    again = rg.grad(lambda m: m(TOKENS).sum())(model)
    for p, q in zip(plain.parameters(), again.parameters(), strict=True):
        np.testing.assert_array_equal(p.numpy(), q.numpy())


@pytest.mark.slow
def test_wrong_calls():
    model = randomized(BERT(BERT_SIZES))
    with pytest.raises(rg.ShapeError, match="9 tokens are more than the 8 positions"):
        model(np.ones((1, 9), int))
    with pytest.raises(rg.IndexRangeError, match="40"):
        model([[40]])[0].numpy()
    with pytest.raises(rg.IndexRangeError, match="2"):
        model([[1]], token_type_ids=[[2]])[0].numpy()
    with pytest.raises(rg.OptionError, match="position_embedding_type='relative_key' is not supp"):
        BERTConfig.from_dict({"position_embedding_type": "relative_key"})
    with pytest.raises(rg.OptionError, match="is_decoder=True is not supported"):
        BERTConfig.from_dict({"is_decoder": True})


def test_labels_count_the_classes():
    config = BERTConfig.from_dict({"id2label": {"0": "bad", "1": "fair", "2": "good"}})
    assert config.num_labels == 3
    assert config.to_dict()["label2id"] == {"bad": 0, "fair": 1, "good": 2}
    assert BERTConfig.from_dict(config.to_dict()) == config
