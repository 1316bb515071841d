"""Every module, of `rg.nn`, `rg.gnn` and `rg.models`, goes through a checkpoint, and so does what
else of `rg.gnn` learns."""

import copy
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import gnn, models, nn
from retrograd.io import load_checkpoint, save_checkpoint

# What a required argument of this name is; of another, a number that suits its annotation.
ARGUMENTS = {
    "cutoffs": [2, 4], "n_classes": 8, "network": nn.Linear(3, 3), "padding": 1, "num_heads": 2,
    "nhead": 2, "num_groups": 2, "decoder_layer": nn.TransformerDecoderLayer(4, 2, 8),
    "encoder_layer": nn.TransformerEncoderLayer(4, 2, 8), "num_layers": 2, "dim": 1,
    "unflattened_size": (2, 2), "output_size": (2, 2), "heads": 2,
}  # fmt: skip
EXTRA: dict[str, Any] = {
    "FractionalMaxPool2d": {"output_size": (2, 2)},
    "FractionalMaxPool3d": {"output_size": (2, 2, 2)},
    "Sequential": (nn.Linear(2, 3), nn.BatchNorm1d(3)),
    "ModuleList": ([nn.Linear(2, 3), nn.Dropout()],),
    "ModuleDict": ({"a": nn.Linear(2, 3)},),
    "MixedPrecision": (nn.Linear(2, 3),),
    "ParameterList": ([rg.ones(2), rg.ones(3)],),
    "ParameterDict": ({"a": rg.ones(2)},),
    "Transformer": {"d_model": 4, "nhead": 2, "num_encoder_layers": 1, "num_decoder_layers": 1,
                    "dim_feedforward": 8},
    "AdaptiveLogSoftmaxWithLoss": {"div_value": 2.0},
    "InstanceNorm1d": {"num_features": 3, "affine": True, "track_running_stats": True},
}  # fmt: skip


ABSTRACT = {nn.Module, models.Pretrained}
BERT = models.BERTConfig(
    vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=2, intermediate_size=4,
    max_position_embeddings=4, num_labels=2,
)  # fmt: skip
CONFIGS = {
    "BERT": BERT, "BERTForMaskedLM": BERT, "BERTForSequenceClassification": BERT,
    "BERTForQuestionAnswering": BERT, "BERTForTokenClassification": BERT,
    "GPT2": models.GPT2Config(vocab_size=9, n_positions=4, n_embd=4, n_layer=1, n_head=2),
    "Llama": models.LlamaConfig(
        vocab_size=9, hidden_size=4, intermediate_size=4, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=4,
    ),
    "ResNet": models.ResNetConfig(
        embedding_size=2, hidden_sizes=(2, 4), depths=(1, 1), num_labels=2, layer_type="basic"
    ),
}  # fmt: skip


def classes():
    for room in (nn, gnn, models):
        for name in room.__all__:
            kind = getattr(room, name)
            if inspect.isclass(kind) and issubclass(kind, nn.Module) and kind not in ABSTRACT:
                yield pytest.param(kind, id=f"{room.__name__[10:]}.{name}")


def made(kind):
    if kind.__name__ in CONFIGS:
        return kind(CONFIGS[kind.__name__])
    extra = EXTRA.get(kind.__name__, {})
    if isinstance(extra, tuple):
        return kind(*copy.deepcopy(extra))
    needed = {
        p.name: copy.deepcopy(ARGUMENTS.get(p.name, 0.5 if "float" in str(p.annotation) else 4))
        for p in inspect.signature(kind).parameters.values()
        if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    }
    module = kind(**needed | extra)
    if kind.__name__.startswith("Lazy"):  # has its parameters from its first call on
        spatial = int(kind.__name__[-2]) if kind is not nn.LazyLinear else 0
        module(rg.ones((2, 3) + (5,) * spatial))
    return module


def values(module):
    return {k: v.numpy() for k, v in module.state_dict().items()}


def same(a, b):
    assert list(a) == list(b)
    for name in a:
        assert a[name].dtype == b[name].dtype
        assert a[name].shape == b[name].shape
        assert (a[name] == b[name]).all(), name


@pytest.mark.sample(16)
@pytest.mark.parametrize("kind", [*classes()])
def test_modules(kind, tmp_path):
    rng = np.random.default_rng(0)
    module, other = made(kind), made(kind)
    drawn = {k: rng.integers(1, 100, v.shape).astype(v.dtype) for k, v in values(module).items()}
    module.load_state_dict(drawn)
    same(values(module), drawn)
    save_checkpoint(tmp_path / "a", module=module)
    load_checkpoint(tmp_path / "a", module=other)
    same(values(other), drawn)
    same(values(copy.deepcopy(module)), drawn)
    same(values(pickle.loads(pickle.dumps(module))), drawn)
    rg.io.save_pytorch(tmp_path / "b", module.state_dict())
    third = made(kind)
    third.load_state_dict(rg.io.load_pytorch(tmp_path / "b"))
    same(values(third), drawn)
    rg.io.save_safetensors(tmp_path / "c", module.state_dict())
    fourth = made(kind)
    fourth.load_state_dict(rg.io.load_safetensors(tmp_path / "c"))
    same(values(fourth), drawn)


def test_the_arguments_make_modules_that_learn():
    """A module that is made without parameters by mistake would prove nothing."""
    kinds = (
        nn.Linear, nn.LSTM, nn.BatchNorm2d, nn.Dropout, nn.Transformer, nn.ParameterList,
        nn.LazyConv1d, nn.InstanceNorm1d, gnn.GATConv, gnn.TreeLSTM, gnn.EdgeDropout,
        models.BERT, models.GPT2, models.Llama, models.ResNet,
    )  # fmt: skip
    assert [kind for kind in kinds if not values(made(kind))] == []


@pytest.fixture
def reference():
    """Without compiling."""
    with rg.backend("reference"):
        yield


def net():
    """A network with names of several kinds, labels and weights."""
    made = gnn.DagNet(2, embedding=gnn.LabelEmbedding(2, seed=1), dtype="float64")
    made.add_node("in", value=[1.0, -2.0])
    made.add_node(7, "tanh", label="and")
    made.add_node(("out", 1), "relu", label="or", value=0.5)
    for source, target, weight in [("in", 7, 0.5), (7, ("out", 1), -1.5), ("in", ("out", 1), 2.0)]:
        made.add_edge(source, target, weight)
    return made


@pytest.mark.usefixtures("reference")
def test_a_network_that_is_a_graph(tmp_path):
    """Structure, weights and the vectors of labels; it goes on as the one that was saved."""
    one, other = net(), gnn.DagNet(2, embedding=gnn.LabelEmbedding(2, seed=9), dtype="float64")
    one.forward()
    one.backward_and_update({7: 1.0}, 0.1)
    save_checkpoint(tmp_path / "a", net=one)
    other.add_node("old")
    other.forward()
    load_checkpoint(tmp_path / "a", net=other)
    with pytest.raises(rg.GradientError):  # of the network that it was
        other.backward({7: 1.0})
    for made in (one, other):
        made.add_node("new", "sigmoid", label="never seen")
        made.add_edge(7, "new", 0.25)
    a, b = one.forward(), other.forward()
    assert list(a) == list(b) == ["in", 7, ("out", 1), "new"]
    assert all((a[k] == b[k]).all() for k in a)
    c, d = (made.backward_and_update({"new": 1.0}, 0.1) for made in (one, other))
    assert (c.edges, c.ends) == (d.edges, d.ends)
    assert (one.weights == other.weights).all()
    assert (one.embedding.grad == other.embedding.grad).all()


@pytest.mark.usefixtures("reference")
def test_states_of_other_networks_are_refused_and_change_nothing():
    one = net()
    before = one.forward()
    good = net().state_dict()
    wrong: list[Any] = [
        gnn.DagNet(3).state_dict(), gnn.DagNet(2).state_dict(), {}, [], {**good, "width": 3},
        {**good, "activations": ["linear"]}, {**good, "activations": ["linear", "none", "relu"]},
        {**good, "ends": np.full((3, 2), 9)}, {**good, "ends": np.zeros((3, 3))},
        {**good, "ends": np.full((3, 2), -1)},
        {**good, "weights": np.zeros(2)}, {**good, "weights": np.array([np.nan, 0, 0])},
        {**good, "names": ["a", "a", "b"]}, {**good, "names": ["a", [], "b"]},
        {**good, "inputs": np.zeros((3, 5))}, {**good, "labels": {5: "x"}},
        {**good, "labels": {0: []}}, {**good, "embedding": {}}, {**good, "embedding": None},
    ]  # fmt: skip
    for state in wrong:
        with pytest.raises(rg.RetrogradError):
            one.load_state_dict(state)
    after = one.forward()
    assert all((before[k] == after[k]).all() for k in before)


def test_vectors_of_labels_and_the_baseline(tmp_path):
    one, other = gnn.LabelEmbedding(3, seed=0), gnn.LabelEmbedding(3, seed=5)
    one.lookup(["a", 2, ("b", 1)])
    one.accumulate(["a"], np.ones((1, 3)))
    baseline, again = gnn.RunningBaseline(0.5), gnn.RunningBaseline(0.5)
    baseline.update([2.0])
    save_checkpoint(tmp_path / "a", labels=one, baseline=baseline, new=gnn.RunningBaseline())
    load_checkpoint(tmp_path / "a", labels=other, baseline=again, new=gnn.RunningBaseline())
    assert (one.lookup(["new", "a", 2]) == other.lookup(["new", "a", 2])).all()
    assert (one.grad == other.grad).all()
    assert again.update([4.0]) == baseline.update([4.0]) == 3.0
    good = one.state_dict()
    others: list[Any] = [
        {}, [], {**good, "weight": np.zeros((4, 2))}, {**good, "names": ["a"]},
        {**good, "grad": np.zeros((1, 3))}, {**good, "names": ["a", "a", "b", "c"]},
        {**good, "random": {}}, {**good, "random": {"bit_generator": "MT19937"}},
    ]  # fmt: skip
    for state in others:
        with pytest.raises(rg.RetrogradError):
            other.load_state_dict(state)
    strange: list[Any] = [{}, {"value": "x"}, {"value": float("nan")}, None]
    for state in strange:
        with pytest.raises(rg.RetrogradError):
            again.load_state_dict(state)
    assert again.value == 3.0
