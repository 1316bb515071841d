# %% [markdown]
# # A gradient in four styles
#
# One graph, one backward pass, four ways to write it down. Run the cells from the top.
# %%
import retrograd as rg

# %% [markdown]
# ## 1. Scalars, as in micrograd
#
# A `Value` remembers how it was computed. `backward()` fills `.grad` of everything it came
# from.
# %%
a, b = rg.Value(2.0, label="a"), rg.Value(-0.5, label="b")
c = (a * b).tanh() + a**2
c.backward()
c
# %% [markdown]
# ## 2. Tensors, as in PyTorch
#
# A tensor shows its type, its numbers and a picture of them. `backward()` adds to `.grad`.
# %%
g = rg.random.Generator(0)
w = rg.tensor(g.normal((6, 12)), requires_grad=True)
x = g.normal((32, 6))
loss = ((x @ w).tanh() ** 2).mean()
loss.backward()
w
# %%
w.grad


# %% [markdown]
# ## 3. Functions, as in JAX
#
# `grad` takes a function and returns one; `vmap` maps it over an axis, `jit` compiles the
# whole.
# %%
def f(x):
    return rg.sin(x) * x


second = rg.grad(rg.grad(f))
rg.jit(rg.vmap(second))(rg.linspace(-3.0, 3.0, 7))
# %% [markdown]
# It is the second derivative: $2 \cos x - x \sin x$.
# %%
points = rg.linspace(-3.0, 3.0, 7)
difference = rg.jit(rg.vmap(second))(points) - (2 * rg.cos(points) - points * rg.sin(points))
print("largest difference below 1e-6:", rg.abs(difference).max().item() < 1e-6)
# %% [markdown]
# ## 4. Graphs
#
# A traced function is a graph, and so is its gradient: it is drawn beside the forward pass.
# %%
graph = rg.trace(lambda a, b, d: rg.relu(a * b + d), *[rg.spec(())] * 3)
graph
# %%
gradient = graph.gradient(wrt=["a", "b"])
print(gradient)
# %%
[t.item() for t in gradient(2.0, -3.0, 10.0)]
# %% [markdown]
# ## What goes wrong is said with its cell and line
# %%
try:
    rg.ones((2, 3)) @ rg.ones((2, 3))
except rg.ShapeError as error:
    print(error)
