"""XOR: the smallest problem that needs a hidden layer, written as in PyTorch.

    python -m examples.xor [--steps 1000] [--seed 0]

The loop is eager: `backward()` fills `.grad`, `opt.step()` changes the parameters in place. Nothing
is declared as compiled; the loop is compiled by itself when it has returned often enough.
"""

import retrograd as rg
from retrograd import nn, optim
from retrograd.nn import functional as F

X = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
Y = [[0.0], [1.0], [1.0], [0.0]]


def main(steps: int = 1000, seed: int = 0) -> dict[str, float]:
    """Train on all four cases at every step; loss and accuracy at the end."""
    g = rg.random.Generator(seed)
    model = nn.Sequential(nn.Linear(2, 8, generator=g), nn.Tanh(), nn.Linear(8, 1, generator=g))
    opt = optim.Adam(model, lr=0.03)
    x, y = rg.tensor(X), rg.tensor(Y)
    for step in range(steps):
        opt.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        loss.backward()
        opt.step()
        if step % 200 == 0:
            print(f"step {step:4} loss {loss.item():.4f}")
    with rg.no_grad():
        logits = model(x)
        loss = F.binary_cross_entropy_with_logits(logits, y)
        accuracy = ((logits > 0) == (y > 0.5)).mean()
    print(f"loss {loss.item():.5f}, {[round(p, 3) for (p,) in rg.sigmoid(logits).tolist()]}")
    return {"loss": loss.item(), "accuracy": accuracy.item()}


if __name__ == "__main__":
    from retrograd.cli.signature import run

    run(main)
