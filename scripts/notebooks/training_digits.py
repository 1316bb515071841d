# %% [markdown]
# # Training on digits
#
# 1,797 handwritten digits of 8 by 8 pixels, which come with the package.
# %%
import retrograd as rg
from retrograd import nn, optim
from retrograd.nn import functional as F

pixels, digits = rg.data.bundled_digits()
images, labels = rg.tensor(pixels).astype("float32") / 16, rg.tensor(digits)
images
# %%
labels[:12]
# %% [markdown]
# Every sixth is kept for testing. The model's layers open by a click.
# %%
test = rg.arange(1797) % 6 == 0
train_x, train_y = images[~test], labels[~test]
test_x, test_y = images[test], labels[test]

g = rg.random.Generator(0)
model = nn.Sequential(
    nn.Flatten(), nn.Linear(64, 64, generator=g), nn.ReLU(), nn.Linear(64, 10, generator=g)
)
model


# %% [markdown]
# `fit` runs the compiled step. A bar shows how far it is, unless `progress=False`;
# interrupting the cell ends the run in good order. The run shows what was measured.
# %%
def loss(model, batch):
    x, y = batch
    return F.cross_entropy(model(x), y)


run = rg.train.fit(
    model,
    loss,
    (train_x, train_y),
    optimizer=optim.AdamW(lr=3e-3),
    epochs=12,
    batch_size=64,
    progress=False,
)
run
# %% [markdown]
# ## What it has learned
#
# The matrix of confusions, of images that it has not seen:
# %%
trained = run.model
scores = trained(test_x).detach()
rg.metrics.ConfusionMatrix(num_classes=10).update(scores, test_y)
# %%
print(f"{100 * rg.metrics.accuracy(scores, test_y).item():.0f} % of the test images are right")
# %% [markdown]
# Those that it takes for something else:
# %%
wrong = scores.argmax(axis=1) != test_y
test_x[wrong]
# %% [markdown]
# What the first hidden units look for, red for and blue against:
# %%
trained[1].weight.detach().reshape((64, 8, 8))


# %% [markdown]
# And which pixels of one image speak for its class: the gradient of the score by the image.
# %%
def score(image):
    return trained(image[None])[0, test_y[0]]


rg.grad(score)(test_x[0])
