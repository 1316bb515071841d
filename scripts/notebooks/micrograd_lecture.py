# %% [markdown]
# # Backpropagation, spelled out
#
# This notebook follows the steps of Andrej Karpathy's lecture *The spelled-out intro to neural
# networks and backpropagation: building micrograd*, in our own words. First we write a class
# `Value` in sixty lines. Then one line, the import, puts retrograd's in its place, and all that
# follows runs as before.
#
# ## 1. What is a derivative?
#
# Take a function of one number.
# %%
import itertools
import math
import random


def f(x):
    return 3 * x**2 - 4 * x + 5


f(3.0)
# %% [markdown]
# Nudge the input by a little, and see by how much the output moves for each unit of nudge. The
# smaller the nudge, the closer that is to the slope, which at 3 is `6 * 3 - 4 = 14`.
# %%
for h in (0.1, 0.001, 0.00001):
    print(h, round((f(3.0 + h) - f(3.0)) / h, 4))
# %% [markdown]
# Where the slope is zero the function is flat: at 2/3.
# %%
h = 1e-6
round((f(2 / 3 + h) - f(2 / 3)) / h, 4)
# %% [markdown]
# With several inputs there is one slope for each: nudge one, keep the others.
# %%
a, b, c = 2.0, -3.0, 10.0
h = 1e-4
d = a * b + c
print("a:", round(((a + h) * b + c - d) / h, 4))
print("b:", round((a * (b + h) + c - d) / h, 4))
print("c:", round((a * b + (c + h) - d) / h, 4))


# %% [markdown]
# ## 2. A number that knows where it comes from
#
# A network has very many inputs, so nudging each is too slow. Instead each number shall remember
# which numbers it was made of, by which operation, and how to hand a gradient on to them.
# %%
class Value:
    def __init__(self, data, _children=(), _op="", label=""):
        self.data, self.grad, self.label = data, 0.0, label
        self._prev, self._op, self._backward = _children, _op, lambda: None

    def __repr__(self):
        return f"Value(data={self.data}, grad={self.grad}, label={self.label!r})"

    def _made(self, data, children, op, slopes):
        """A new value, whose children have these slopes."""
        out = Value(data, children, op)

        def hand_on():
            for child, slope in zip(children, slopes, strict=True):
                child.grad += slope * out.grad  # added: a child may be used more than once

        out._backward = hand_on
        return out

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return self._made(self.data + other.data, (self, other), "+", (1.0, 1.0))

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return self._made(self.data * other.data, (self, other), "*", (other.data, self.data))

    def __pow__(self, p):
        return self._made(self.data**p, (self,), f"**{p}", (p * self.data ** (p - 1),))

    def exp(self):
        e = math.exp(self.data)
        return self._made(e, (self,), "exp", (e,))

    def tanh(self):
        t = math.tanh(self.data)
        return self._made(t, (self,), "tanh", (1 - t * t,))

    def backward(self):
        order, seen = [], set()

        def visit(v):
            if v not in seen:
                seen.add(v)
                for child in v._prev:
                    visit(child)
                order.append(v)

        visit(self)
        self.grad = 1.0
        for v in reversed(order):
            v._backward()

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -1 * other

    def __rsub__(self, other):
        return other + -1 * self

    def __truediv__(self, other):
        return self * other**-1


# %% [markdown]
# **The import.** With this line `Value` is retrograd's, which has the same names, does not
# recurse, and draws itself. Leave the cell out, and the class above does the rest of the
# notebook.
# %%
from retrograd import Value

# %% [markdown]
# ## 3. The graph of an expression
# %%
a = Value(2.0, label="a")
b = Value(-3.0, label="b")
c = Value(10.0, label="c")
e = a * b
e.label = "e"
d = e + c
d.label = "d"
f = Value(-2.0, label="f")
L = d * f
L.label = "L"
print(L.data, [child.label for child in d._prev], d._op)
# %% [markdown]
# Retrograd's `Value` shows the graph when a cell ends with it.
# %%
L


# %% [markdown]
# Whoever wants to draw it himself walks along `_prev`:
# %%
def trace(root):
    nodes, todo = [], [root]
    while todo:
        v = todo.pop()
        if v not in nodes:
            nodes.append(v)
            todo.extend(v._prev)
    return nodes


for v in trace(L):
    made = f" = {v._op} of {[child.label for child in v._prev]}" if v._op else ""
    print(f"{v.label}: {v.data}{made}")
# %% [markdown]
# ## 4. Backpropagation by hand
#
# `L` moves as `L` does: its gradient is 1. In `L = d * f` the slope by `d` is `f` and that by `f`
# is `d`. A sum hands its gradient on unchanged. And so on, back to the inputs: at each operation,
# the gradient that arrives times the slope of the operation. That is the chain rule.
# %%
L.grad = 1.0
f.grad = d.data * L.grad
d.grad = f.data * L.grad
c.grad = 1.0 * d.grad
e.grad = 1.0 * d.grad
a.grad = b.data * e.grad
b.grad = a.data * e.grad
for v in (a, b, c, f):
    print(v.label, v.grad)


# %% [markdown]
# A check by nudging, as in the beginning:
# %%
def expression(a=2.0, b=-3.0, c=10.0, f=-2.0):
    return (a * b + c) * f


h = 1e-6
start = expression()
print("a", round((expression(a=2.0 + h) - start) / h, 4))
print("f", round((expression(f=-2.0 + h) - start) / h, 4))
# %% [markdown]
# Gradients say where to go. A small step of the inputs along them makes `L` larger:
# %%
for v in (a, b, c, f):
    v.data += 0.01 * v.grad
print(round(((a * b + c) * f).data, 4), "was", start)


# %% [markdown]
# ## 5. A neuron
#
# Inputs times weights, a bias, and a function that squashes the sum. The bias is chosen such that
# the numbers come out round.
# %%
def neuron():
    x1, x2 = Value(2.0, label="x1"), Value(0.0, label="x2")
    w1, w2 = Value(-3.0, label="w1"), Value(1.0, label="w2")
    b = Value(6.8813735870195432, label="b")
    x1w1 = x1 * w1
    x2w2 = x2 * w2
    both = x1w1 + x2w2
    n = both + b
    n.label = "n"
    o = n.tanh()
    o.label = "o"
    return (x1, x2, w1, w2, b), (x1w1, x2w2, both, n, o)


inputs, (x1w1, x2w2, both, n, o) = neuron()
print(round(o.data, 4))
# %% [markdown]
# Each value knows how to hand its gradient on, `_backward`. We call them in order, from the end:
# %%
o.grad = 1.0
for v in (o, n, both, x1w1, x2w2):
    v._backward()
print([(v.label, round(v.grad, 4)) for v in inputs])
# %% [markdown]
# `backward()` finds that order itself: a value comes after all that used it.
# %%
inputs, (*_, o) = neuron()
o.backward()
print([(v.label, round(v.grad, 4)) for v in inputs])
# %%
o
# %% [markdown]
# **A mistake to make once.** A value that is used twice gets gradients from two sides, and they
# add up. If they overwrote each other, this would print 1:
# %%
a = Value(3.0, label="a")
(a + a).backward()
print(a.grad)
# %% [markdown]
# ## 6. tanh, taken apart
#
# How large an operation is, is up to us. `tanh` may be one step, or made of an exponential, a
# difference and a quotient; the gradients are the same.
# %%
inputs, (*_, n, _) = neuron()
e = (2 * n).exp()
o = (e - 1) / (e + 1)
o.backward()
print(round(o.data, 4), [(v.label, round(v.grad, 4)) for v in inputs])
# %% [markdown]
# ## 7. The same with tensors
#
# PyTorch does this for arrays. So does retrograd, with the same names, so this cell runs with
# either import.
# %%
import retrograd as torch  # or: import torch

number = {"dtype": torch.float64, "requires_grad": True}
x1 = torch.tensor([2.0], **number)
x2 = torch.tensor([0.0], **number)
w1 = torch.tensor([-3.0], **number)
w2 = torch.tensor([1.0], **number)
b = torch.tensor([6.8813735870195432], **number)
o = torch.tanh(x1 * w1 + x2 * w2 + b)
o.backward()
print(round(o.item(), 4))
print([round(t.grad.item(), 4) for t in (x1, x2, w1, w2, b)])


# %% [markdown]
# ## 8. From neurons to a network
#
# A layer is a list of neurons on the same inputs, a perceptron of several layers a list of
# layers.
# %%
class Neuron:
    def __init__(self, inputs):
        self.w = [Value(random.uniform(-1, 1)) for _ in range(inputs)]
        self.b = Value(random.uniform(-1, 1))

    def __call__(self, x):
        return sum((wi * xi for wi, xi in zip(self.w, x, strict=True)), self.b).tanh()

    def parameters(self):
        return [*self.w, self.b]


class Layer:
    def __init__(self, inputs, outputs):
        self.neurons = [Neuron(inputs) for _ in range(outputs)]

    def __call__(self, x):
        outs = [neuron(x) for neuron in self.neurons]
        return outs[0] if len(outs) == 1 else outs

    def parameters(self):
        return [p for neuron in self.neurons for p in neuron.parameters()]


class MLP:
    def __init__(self, inputs, outputs):
        sizes = [inputs, *outputs]
        self.layers = [Layer(m, n) for m, n in itertools.pairwise(sizes)]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def parameters(self):
        return [p for layer in self.layers for p in layer.parameters()]


random.seed(1337)
net = MLP(3, [4, 4, 1])
print(len(net.parameters()), "parameters")
print(round(net([2.0, 3.0, -1.0]).data, 4))
# %% [markdown]
# ## 9. Training
#
# Four samples, four targets. The loss is the sum of squared errors: zero if all outputs are as
# wanted.
# %%
samples = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
targets = [1.0, -1.0, -1.0, 1.0]


def squares(net):
    return sum((net(x) - y) ** 2 for x, y in zip(samples, targets, strict=True))


loss = squares(net)
loss.backward()
weight = net.layers[0].neurons[0].w[0]
print(round(loss.data, 4), "and the gradient of one weight:", round(weight.grad, 4))
# %% [markdown]
# The loop: compute the loss, set gradients to zero, go back, step against the gradient.
# Forgetting to set them to zero is the most frequent mistake of all, as gradients of a second
# pass are added to those of the first.
# %%
for step in range(40):
    loss = squares(net)
    for p in net.parameters():
        p.grad = 0.0
    loss.backward()
    for p in net.parameters():
        p.data -= 0.1 * p.grad
    if step % 10 == 9:
        print(step + 1, round(loss.data, 4))
# %%
print([round(net(x).data, 2) for x in samples], "for", targets)
# %% [markdown]
# ## Where to go from here
#
# `retrograd.micrograd` has `Neuron`, `Layer` and `MLP` with micrograd's signatures (and its
# `relu`). `rg.jit` compiles a training step that is written with `Value`; the tutorial *Build
# micrograd and see every step* shows it, and the example of two moons trains a larger network.
