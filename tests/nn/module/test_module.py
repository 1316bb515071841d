"""Modules: finding members, state, modes, scopes, errors."""

import copy

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn


class Block(nn.Module):
    def __init__(self, n):
        self.attn = nn.Linear(n, n)
        self.scale = nn.Parameter(rg.ones((n,)))

    def forward(self, x):
        return self.attn(x) * self.scale


class Model(nn.Module):
    offset: rg.Tensor

    def __init__(self, n=3, depth=2):
        super().__init__()
        self.layers = [Block(n) for _ in range(depth)]
        self.heads = {"a": nn.Linear(n, 1), "b": nn.Linear(n, 2, bias=False)}
        self.pair = (nn.Parameter([1.0]), 7)
        self.register_buffer("offset", rg.arange(3.0))
        self.register_buffer("scratch", np.zeros(2, np.float32), persistent=False)
        self.width = n

    def forward(self, x):
        for layer in self.layers:
            x = layer(x) + self.offset
        return self.heads["a"](x) * self.pair[0]


NAMES = [
    "pair.0",
    "layers.0.scale",
    "layers.0.attn.weight",
    "layers.0.attn.bias",
    "layers.1.scale",
    "layers.1.attn.weight",
    "layers.1.attn.bias",
    "heads.a.weight",
    "heads.a.bias",
    "heads.b.weight",
]


def test_members_are_found_in_attributes_lists_tuples_and_dicts():
    model = Model()
    assert [n for n, _ in model.named_parameters()] == NAMES
    assert [n for n, _ in model.named_buffers()] == ["offset", "scratch"]
    assert [n for n, _ in model.named_children()] == ["layers.0", "layers.1", "heads.a", "heads.b"]
    assert [n for n, _ in model.named_modules()][:3] == ["", "layers.0", "layers.0.attn"]
    assert len(list(model.modules())) == 7
    assert len(list(model.children())) == 4
    assert sorted(model.state_dict()) == sorted([*NAMES, "offset"])
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in model.parameters())


def test_a_parameter_reached_twice_counts_once():
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    assert [n for n, _ in model.named_parameters()] == ["0.weight", "0.bias", "1.bias"]


def test_train_and_eval_reach_everything():
    model = Model().eval()
    assert not any(m.training for m in model.modules())
    assert all(m.training for m in model.train().modules())


def test_zero_grad_and_freezing():
    model = Model()
    model(rg.ones((2, 3))).sum().backward()
    assert model.layers[0].scale.grad is not None
    assert model.heads["b"].weight.grad is None
    model.zero_grad(set_to_none=False)
    assert not model.layers[0].scale.grad.numpy().any()
    assert model.heads["b"].weight.grad is None
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())
    model.layers[0].requires_grad_(False)
    loss = model(rg.ones((2, 3))).sum()
    loss.backward()
    assert model.layers[0].scale.grad is None
    assert model.layers[1].scale.grad is not None


def test_a_model_frozen_throughout_has_no_gradient():
    model = Model().requires_grad_(False)
    loss = model(rg.ones((2, 3))).sum()
    assert not loss.requires_grad
    with pytest.raises(rg.GradientError):
        loss.backward()


def test_apply_goes_below_first():
    seen = []
    nn.Sequential(nn.Linear(1, 1), nn.ReLU()).apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["ReLU", "Linear", "Sequential"]


def test_to_converts_floating_tensors():
    model = Model().to(rg.float64)
    assert {p.dtype for p in model.parameters()} == {rg.float64}
    assert model.offset.dtype is rg.float64
    assert model(rg.ones((2, 3), dtype=rg.float64)).dtype is rg.float64
    assert all(p.requires_grad for p in model.parameters())
    with pytest.raises(rg.FormatError):
        model.to(rg.int32)


def test_repr_shows_the_structure():
    text = repr(nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Dropout(0.25))))
    assert text == (
        "Sequential(\n"
        "  (0): Linear(2, 3, bias=True)\n"
        "  (1): Sequential(\n"
        "    (0): ReLU()\n"
        "    (1): Dropout(p=0.25)\n"
        "  )\n"
        ")"
    )
    assert repr(nn.Parameter([1.0])).startswith("Parameter([1.]")


# -- state ---------------------------------------------------------------------------------------


def test_state_goes_round():
    one, other = Model(), Model()
    x = rg.ones((2, 3))
    assert not np.array_equal(one(x).numpy(), other(x).numpy())
    result = other.load_state_dict(one.state_dict())
    assert result == ([], [])
    assert np.array_equal(one(x).numpy(), other(x).numpy())


def test_state_is_a_snapshot():
    model = nn.Linear(2, 2)
    state = model.state_dict()
    before = state["weight"].numpy().copy()
    given = {"weight": np.zeros((2, 2)), "bias": np.zeros(2)}
    model.load_state_dict(given)
    given["weight"][:] = 5
    assert np.array_equal(state["weight"].numpy(), before)
    assert model.weight.tolist() == [[0, 0], [0, 0]]
    assert model.weight.dtype is rg.float32
    assert model.weight.requires_grad


def test_state_that_does_not_fit_names_everything_and_changes_nothing():
    model = nn.Linear(2, 2)
    before = model.weight.numpy().copy()
    with pytest.raises(rg.FormatError) as missing:
        model.load_state_dict({"weight": np.zeros((2, 2)), "extra": np.zeros(1)})
    assert "lacks bias" in str(missing.value)
    assert "no extra" in str(missing.value)
    with pytest.raises(rg.ShapeError) as wrong:
        model.load_state_dict({"weight": np.zeros((2, 3)), "bias": np.zeros(4), "extra": 1.0})
    for part in ("weight is (2, 2), the given value (2, 3)", "bias is (2,)", "no extra", "Linear"):
        assert part in str(wrong.value)
    assert np.array_equal(model.weight.numpy(), before)


def test_state_loads_in_part_if_asked():
    model = nn.Linear(2, 2)
    result = model.load_state_dict({"weight": np.ones((2, 2)), "extra": 1.0}, strict=False)
    assert result.missing_keys == ["bias"]
    assert result.unexpected_keys == ["extra"]
    assert model.weight.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(rg.ShapeError):
        model.load_state_dict({"weight": np.ones(3)}, strict=False)


def test_generators_are_part_of_the_state_but_need_not_be_given():
    model = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 2))
    other = nn.Sequential(nn.Dropout(0.5), nn.Linear(2, 2))
    model(rg.ones((4, 2)))
    state = model.state_dict()
    assert "0.generator.key" in state
    other.load_state_dict(state)
    x = rg.ones((64, 2))
    assert np.array_equal(model(x).numpy(), other(x).numpy())
    other.load_state_dict({k: v for k, v in state.items() if "generator" not in k})


def test_deepcopy_is_independent():
    model = Model()
    model.layers[0].requires_grad_(False)
    twin = copy.deepcopy(model)
    model.load_state_dict({k: v * 0 for k, v in model.state_dict().items()})
    assert twin.layers[0].scale.tolist() == [1, 1, 1]
    assert [p.trainable for p in twin.parameters()] == [p.trainable for p in model.parameters()]
    assert [p.requires_grad for p in twin.parameters()] == [p.trainable for p in model.parameters()]


# -- scopes --------------------------------------------------------------------------------------


def test_nodes_carry_the_path_of_the_module():
    model = Model()
    graph = rg.trace(lambda x: model(x).sum(), rg.spec((2, 3)))
    found = {n.scope for n in graph.nodes}
    assert {"Model", "Model.layers[0]", "Model.layers[1].attn", "Model.heads['a']"} <= found
    assert all(scope.startswith("Model") or not scope for scope in found)


def test_gradient_nodes_carry_the_scope_too():
    model = Model()
    graph = rg.trace(lambda x: model(x).sum(), rg.spec((2, 3))).gradient()
    backward = [n for n in graph.nodes if n.origin is not None]
    assert "Model.layers[0].attn" in {n.scope for n in backward}


def test_a_module_called_below_another_without_being_part_of_it():
    helper = nn.Linear(3, 3)

    class Outer(nn.Module):
        def forward(self, x):
            return nn.Sequential(nn.ReLU())(helper.forward(x))

    graph = rg.trace(Outer(), rg.spec((2, 3)))
    assert {n.scope for n in graph.nodes if n.op == "relu"} == {"Outer.Sequential[0]"}


def test_the_scope_ends_with_the_call():
    model = nn.Sequential(nn.Linear(2, 2))
    model(rg.ones((1, 2)))
    with pytest.raises(rg.ShapeError):
        model(rg.ones((1, 3)))
    assert (rg.ones((2,)) + rg.ones((2,))).node.scope == ""


def test_nodes_carry_the_users_line():
    y = nn.Linear(3, 3)(rg.ones((2, 3)))
    assert y.node.source.file == __file__


# -- errors --------------------------------------------------------------------------------------


def test_wrong_feature_size_names_the_layer():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(5, 1))
    with pytest.raises(rg.ShapeError) as error:
        model(rg.ones((2, 3)))
    assert "Sequential[2]" in str(error.value)
    assert "(2, 4)" in str(error.value)
    assert "(1, 5)" in str(error.value)


def test_errors_inside_a_module_note_it():
    class Bad(nn.Module):
        def forward(self, x):
            return x @ x

    with pytest.raises(rg.ShapeError) as error:
        nn.Sequential(Bad())(rg.ones((2, 3)))
    assert error.value.__notes__ == ["in module Sequential[0]"]


def test_a_parameter_does_not_silently_become_a_tensor():
    model = nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"Linear\.weight is a parameter"):
        model.weight = rg.zeros((2, 2))  # type: ignore[assignment]
    model.weight = nn.Parameter(rg.zeros((2, 2)))
    assert model.weight.tolist() == [[0, 0], [0, 0]]


def test_forward_is_required():
    with pytest.raises(NotImplementedError, match="Empty"):
        type("Empty", (nn.Module,), {})()(1.0)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: nn.Linear(0, 2), rg.ShapeError),
        (lambda: nn.Embedding(3, 0), rg.ShapeError),
        (lambda: nn.Embedding(3, 2, padding_idx=3), rg.OptionError),
        (lambda: nn.Dropout(1.5), rg.OptionError),
        (lambda: nn.Dropout(-0.1), rg.OptionError),
        (lambda: nn.MultiHeadAttention(6, 4), rg.ShapeError),
        (lambda: nn.MultiHeadAttention(6, 0), rg.ShapeError),
        (lambda: nn.init.kaiming_normal((3,)), rg.ShapeError),
        (lambda: nn.init.kaiming_normal((3, 3), mode="fan"), rg.OptionError),
        (lambda: nn.init.calculate_gain("what"), rg.OptionError),
        (lambda: nn.Flatten(2)(rg.ones((2, 3))), rg.ShapeError),
    ],
)
def test_configurations_that_make_no_sense(make, error):
    with pytest.raises(error):
        make()


# -- names that do not fit -----------------------------------------------------------------------
def small() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))


def test_missing_names_come_with_shapes_and_near_misses():
    model = small()
    state = {k.replace("0.weight", "0.wieght"): v for k, v in model.state_dict().items()}
    with pytest.raises(rg.FormatError) as error:
        model.load_state_dict(state)
    text = str(error.value)
    assert "lacks 0.weight (3, 2) (there is 0.wieght)" in text
    assert "has no 0.wieght (there is 0.weight)" in text


def test_a_common_beginning_of_names_is_named():
    model = small()
    state = {f"module.{k}": v for k, v in model.state_dict().items()}
    with pytest.raises(rg.FormatError, match=r"names of the state begin with 'module\.'"):
        model.load_state_dict(state)
    wrapped = nn.ModuleDict({"net": small()})
    with pytest.raises(rg.FormatError, match=r"names of the module begin with 'net\.'"):
        wrapped.load_state_dict(model.state_dict())


@pytest.mark.slow
def test_of_many_names_the_first_are_listed_in_little_time():
    model = nn.ModuleList([nn.Linear(1, 1) for _ in range(300)])
    state = {f"x{k}": v for k, v in model.state_dict().items()}
    with pytest.raises(rg.FormatError, match="and 550 more"):
        model.load_state_dict(state)


# -- names of PyTorch ----------------------------------------------------------------------------
def test_buffers_parameters_and_modules_by_name():
    class Counted(nn.Module):
        inner: nn.Sequential

        def __init__(self):
            self.count = nn.Buffer(rg.tensor([1.0]))
            self.scratch = nn.Buffer(rg.tensor(2.0), persistent=False)
            self.add_module("inner", small())
            self.register_parameter("scale", nn.Parameter(rg.ones(2)))
            self.register_parameter("bias", None)

    m = Counted()
    assert [n for n, _ in m.named_buffers()] == ["count", "scratch"]
    inner = ["inner.0.weight", "inner.0.bias", "inner.1.weight", "inner.1.bias"]
    assert list(m.state_dict()) == ["count", "scale", *inner]
    assert type(m.count) is rg.Tensor
    m.count = nn.Buffer(rg.tensor([3.0]))
    assert m.state_dict()["count"].tolist() == [3.0]
    assert m.get_parameter("inner.0.weight") is m.inner[0].weight
    assert m.get_buffer("count") is m.count
    assert m.get_submodule("inner.1") is m.inner[1]
    assert m.get_submodule("") is m
    for get, name in ((m.get_parameter, "inner.0.wieght"), (m.get_submodule, "iner")):
        with pytest.raises(AttributeError, match="did you mean 'inner"):
            get(name)
    with pytest.raises(rg.FormatError, match=r"identifier, not 'a\.b'"):
        m.add_module("a.b", small())


def test_dtypes_by_name():
    for name in ("double", "half", "bfloat16", "float"):
        m = getattr(small(), name)()
        assert {p.dtype.name for p in m.parameters()} == {
            {"double": "float64", "half": "float16", "float": "float32"}.get(name, name)
        }


def test_there_is_one_device() -> None:
    model = nn.Linear(2, 2)
    assert model.to("cpu") is model.cpu() is model
    with pytest.raises(rg.OptionError, match="no device 'cuda:0'"):
        model.to("cuda:0")
