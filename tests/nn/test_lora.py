"""Adapters against weights added by hand, and what they refuse."""

import copy
from typing import Any

import numpy as np
import pytest

import retrograd as rg
from retrograd import nn, optim
from retrograd.errors import FormatError, OptionError, ShapeError

lora = nn.lora
I = np.array([[1, 2, 3, 9, 2]])  # noqa: E741 - indices


class Net(nn.Module):
    def __init__(self) -> None:
        self.emb = nn.Embedding(10, 6, padding_idx=2, dtype=rg.float64)
        self.convs = [
            nn.Conv1d(6, 6, 3, padding=1, padding_mode="circular", dtype=rg.float64),
            nn.Conv1d(6, 5, 2, stride=2, padding=2, dilation=2, dtype=rg.float64),
        ]
        self.lin = nn.Linear(5, 4, dtype=rg.float64)
        self.head = nn.Linear(4, 2, dtype=rg.float64)

    def forward(self, i: Any) -> Any:
        x = rg.swapaxes(self.emb(i), 1, 2)
        for conv in self.convs:
            x = conv(x)
        return self.head(rg.tanh(self.lin(rg.swapaxes(x, 1, 2))))


def adapted(**options: Any) -> Net:
    m = Net()
    lora.add(m, ["emb", "convs.*", "lin"], rank=2, alpha=6, **options)
    rng = np.random.default_rng(0)
    for name, p in m.named_parameters():
        if "lora" in name:
            p.replace(0.2 * rng.normal(size=p.shape))
    if "emb" in "".join(n for n, _ in m.named_parameters()):
        a = m.emb.lora_A.numpy().copy()  # type: ignore[attr-defined]
        a[:, 2] = 0
        m.emb.lora_A.replace(a)  # type: ignore[attr-defined]
    return m


def test_at_first_nothing_changes_and_all_else_is_frozen() -> None:
    m = Net()
    before, names = m(I).numpy(), list(m.state_dict())
    assert lora.add(m, rank=3) is m
    np.testing.assert_array_equal(m(I).numpy(), before)
    learned = [name for name, p in m.named_parameters() if p.trainable]
    assert learned == ["lin.lora_A", "lin.lora_B", "head.lora_A", "head.lora_B"]
    assert [n for n in m.state_dict() if "lora" not in n] == names
    assert isinstance(m.lin, nn.Linear)


def test_values_are_those_of_the_sum_of_the_weights() -> None:
    m, plain = adapted(), Net()
    state = {k: v.numpy() for k, v in m.state_dict().items()}
    for name in ("lin", "convs.0", "convs.1", "emb"):
        a, b = state.pop(f"{name}.lora_A"), state.pop(f"{name}.lora_B")
        added = 3.0 * np.tensordot(b.reshape(len(b), 2), a, 1)
        state[f"{name}.weight"] = state[f"{name}.weight"] + (added.T if name == "emb" else added)
    plain.load_state_dict(state)
    np.testing.assert_allclose(m(I).numpy(), plain(I).numpy(), rtol=1e-10)
    # Gradients are those that the sum would pass on.
    (m(I) ** 2).sum().backward()
    (plain(I) ** 2).sum().backward()
    g = plain.lin.weight.grad.numpy()
    lin: Any = m.lin
    np.testing.assert_allclose(lin.lora_B.grad.numpy(), 3 * g @ lin.lora_A.numpy().T, rtol=1e-9)
    np.testing.assert_allclose(lin.lora_A.grad.numpy(), 3 * lin.lora_B.numpy().T @ g, rtol=1e-9)
    assert lin.weight.grad is None
    conv: Any = m.convs[1]
    g = plain.convs[1].weight.grad.numpy()
    b = conv.lora_B.numpy()[..., 0]
    np.testing.assert_allclose(conv.lora_A.grad.numpy(), 3 * np.tensordot(b.T, g, 1), rtol=1e-9)
    emb: Any = m.emb
    g = plain.emb.weight.grad.numpy()
    np.testing.assert_allclose(
        emb.lora_A.grad.numpy(), (3 * g @ emb.lora_B.numpy()).T, rtol=1e-9, atol=1e-12
    )


def test_merged_unmerged_and_removed() -> None:
    m = adapted()
    y = m(I).numpy()
    bits = {k: v.numpy().copy() for k, v in m.state_dict().items()}
    lora.merge(lora.merge(m))
    assert "merged" in repr(m.lin)
    np.testing.assert_allclose(m(I).numpy(), y, rtol=1e-10)
    assert (m.lin.weight.numpy() != bits["lin.weight"]).any()
    lora.unmerge(lora.unmerge(m))
    for name, x in m.state_dict().items():
        np.testing.assert_array_equal(x.numpy(), bits[name])
    forgotten = lora.remove(copy.deepcopy(m), merge=False)
    np.testing.assert_array_equal(forgotten.lin.weight.numpy(), bits["lin.weight"])
    lora.remove(lora.merge(m))
    assert type(m.lin) is nn.Linear
    assert "lora" not in "".join(m.state_dict())
    np.testing.assert_allclose(m(I).numpy(), y, rtol=1e-10)
    assert m.lin.weight.trainable


def test_only_adapters_are_trained_and_saved() -> None:
    m = adapted(trainable=["head"])
    frozen = {n: p.numpy().copy() for n, p in m.named_parameters() if not p.trainable}
    opt = optim.SGD(m, lr=0.1)
    (m(I) ** 2).sum().backward()
    opt.step()
    for name, p in m.named_parameters():
        if name in frozen:
            np.testing.assert_array_equal(p.numpy(), frozen[name])
    saved = lora.state_dict(m)
    assert {n.rpartition(".")[2] for n in saved if "head" not in n} == {"lora_A", "lora_B"}
    assert {"head.weight", "head.bias"} <= set(saved)
    again = Net()
    again.load_state_dict({k: v for k, v in m.state_dict().items() if "lora" not in k})
    lora.add(again, ["emb", "convs.*", "lin"], rank=2, alpha=6, trainable="head")
    lora.load_state_dict(again, saved)
    np.testing.assert_array_equal(again(I).numpy(), m(I).numpy())
    peft = {f"base_model.model.{n}.weight": x for n, x in saved.items() if "lora" in n}
    peft = {n.replace("emb.lora_", "emb.lora_embedding_"): x for n, x in peft.items()}
    third = lora.add(Net(), ["emb", "convs.*", "lin"], rank=2)
    lora.load_state_dict(third, {n.replace(".weight", "") if "embedding" in n else n: x
                                 for n, x in peft.items()})  # fmt: skip
    np.testing.assert_array_equal(third.lin.lora_A.numpy(), m.lin.lora_A.numpy())  # type: ignore[attr-defined]


def test_jit_copies_and_dropout() -> None:
    m = adapted(dropout=0.5)
    assert (m(I).numpy() != m(I).numpy()).any()
    m.eval()
    np.testing.assert_array_equal(m(I).numpy(), adapted_like(m)(I).numpy())
    with rg.backend("llvm"):
        np.testing.assert_allclose(rg.jit(lambda m, i: m(i))(m, I).numpy(), m(I).numpy(), rtol=1e-9)
    slopes = rg.grad(lambda m: (m(I) ** 2).sum())(m)
    assert slopes.lin.lora_B.numpy().any()
    wide = nn.Linear(3, 3)
    both = lora.add(nn.Sequential(wide, nn.Tanh(), wide), rank=1)
    assert both[0] is both[2]
    assert len(list(both.parameters())) == 4


def adapted_like(m: Net) -> Any:
    return copy.deepcopy(m)


def test_other_layers() -> None:
    image = nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(3 * 16, 2))
    lora.add(image, "0", rank=2)
    assert image[0].lora_A.shape == (2, 2, 3, 3)
    assert image(rg.ones((1, 2, 6, 6))).shape == (1, 2)
    heads = lora.add(nn.Sequential(nn.GroupedQueryAttention(8, 2)), ["q_proj", "v_proj"], rank=2)
    (heads(rg.ones((1, 3, 8))) ** 2).sum().backward()
    assert heads[0].q_proj.lora_B.grad is not None
    only = lora.add(Net(), lambda name, module: name == "head")
    assert [n for n, p in only.named_parameters() if p.trainable] == ["head.lora_A", "head.lora_B"]


def test_refusals() -> None:
    m = Net()
    with pytest.raises(OptionError, match="did you mean 'lin'"):
        lora.add(m, "line")
    with pytest.raises(OptionError, match="rank is at least 1"):
        lora.add(m, rank=0)
    with pytest.raises(OptionError, match="no parameter or module is named 'heat'"):
        lora.add(m, trainable="heat")
    assert all(p.trainable for p in m.parameters())
    lora.add(m, "lin", rank=2)
    with pytest.raises(OptionError, match="has an adapter already"):
        lora.add(m, "lin")
    with pytest.raises(FormatError, match=r"lacks lin\.lora_B"):
        lora.load_state_dict(m, {"lin.lora_A": np.zeros((2, 5))})
    good = {k: v.numpy() for k, v in lora.state_dict(m).items()}
    with pytest.raises(FormatError, match=r"has no lin\.lora_C; did you mean 'lin\.lora_"):
        lora.load_state_dict(m, {**good, "lin.lora_C": np.zeros(1)})
    with pytest.raises(ShapeError, match=r"lin\.lora_A is \(2, 5\)"):
        lora.load_state_dict(m, {**good, "lin.lora_A": np.zeros((3, 5))})
    with pytest.raises(OptionError, match="2 groups"):
        lora.add(nn.Sequential(nn.Conv1d(4, 4, 1, groups=2)), "0")
    with pytest.raises(OptionError, match="a ReLU; adapters are for Linear"):
        lora.add(nn.Sequential(nn.ReLU()), "0")
    with pytest.raises(OptionError, match="never called"):
        lora.add(nn.Sequential(nn.MultiheadAttention(4, 2)), "out_proj")


@pytest.mark.torch
def test_values_against_torch() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (extra: torch)")
    m: Any = lora.add(nn.Sequential(nn.Linear(5, 4, dtype=rg.float64)), rank=2, alpha=3)
    m[0].lora_B.replace(np.random.default_rng(0).normal(size=(4, 2)))
    w = {k: torch.tensor(v.numpy(), requires_grad=True) for k, v in m.state_dict().items()}
    x = np.random.default_rng(1).normal(size=(3, 5))
    f = torch.nn.functional.linear
    low = f(f(torch.tensor(x), w["0.lora_A"]), w["0.lora_B"])
    expected = f(torch.tensor(x), w["0.weight"], w["0.bias"]) + 1.5 * low
    expected.square().sum().backward()
    y = m(x)
    (y * y).sum().backward()
    np.testing.assert_allclose(y.numpy(), expected.detach().numpy(), rtol=1e-12)
    for name in ("lora_A", "lora_B"):
        grad = getattr(m[0], name).grad.numpy()
        np.testing.assert_allclose(grad, w[f"0.{name}"].grad.numpy(), rtol=1e-10)
