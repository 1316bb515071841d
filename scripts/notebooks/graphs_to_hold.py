# %% [markdown]
# # Graphs you can hold
#
# The computation, and that of its gradient, are values: print them, run them, differentiate
# them again, ask them where a NaN comes from.
# %%
import retrograd as rg
from retrograd import nn

N = rg.Dim("N")
model = nn.Linear(3, 1, generator=rg.random.Generator(0))


def loss(model, x, y):
    return ((rg.tanh(model(x))[:, 0] - y) ** 2).mean()


graph = rg.trace(loss, model, rg.spec((N, 3)), rg.spec((N,)))
graph
# %% [markdown]
# `N` is a name: one program serves all sizes. In a notebook, `graph.show()` puts the explorer
# below the cell, in which the backward pass can be played step by step.
#
# ## The gradient is a graph
# %%
weight = graph.inputs[0]
gradient = graph.gradient(wrt=weight)
print(gradient.explain(stage="canonical"))
# %% [markdown]
# Its text is read back to an equal graph, and it can be differentiated again.
# %%
print(rg.Graph.parse(str(gradient)).structure() == gradient.structure())
print(len(gradient.nodes), "nodes;", gradient.stats({"N": 100}).flops, "operations for 100 samples")
# %% [markdown]
# ## A tape is a record of what happened
# %%
with rg.Tape() as tape:
    a = tape.leaf([1.0, 2.0, 3.0], name="a")
    b = tape.leaf(2.0, name="b", requires_grad=False)
    c = (a * b).exp()
    d = c.sum()
tape
# %%
for step in tape.trace_backward(d):
    print(step.entry.op, "has the gradient", step.upstream, "and passes on to", [*step.accumulated])
# %% [markdown]
# ## Where a NaN comes from
#
# NaN and infinities are counted, and have their own colours.
# %%
x = rg.linspace(-1.0, 4.0, 6)
rg.log(x)
# %% [markdown]
# `rg.debug()` stops at the operation that made the first one, and says why.
# %%
try:
    with rg.debug():
        (rg.log(x) * 0.0).sum().numpy()
except rg.NonFiniteError as error:
    print(error)


# %% [markdown]
# The remedy, with an exact gradient: what `where` did not take contributes nothing.
# %%
def safe(x):
    return rg.where(x > 0, rg.log(x), 0.0).sum()


rg.grad(safe)(x)
