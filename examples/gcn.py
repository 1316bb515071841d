"""A graph convolutional network (Kipf, Welling, arXiv:1609.02907) on Zachary's karate club.

    python -m examples.gcn [--steps 200] [--seed 0]

34 people, 78 friendships, and a quarrel that split the club in two. The sides of the two leaders
are known to the network, those of the others it has to find. People have no features: each is told
apart by its number alone, so everything that is learned comes along the edges.
"""

from typing import Any

import retrograd as rg
from retrograd import gnn, nn, optim
from retrograd.nn import functional as F

FRIENDS = {  # of each, those with a greater number
    0: (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 17, 19, 21, 31), 1: (2, 3, 7, 13, 17, 19, 21, 30),
    2: (3, 7, 8, 9, 13, 27, 28, 32), 3: (7, 12, 13), 4: (6, 10), 5: (6, 10, 16), 6: (16,),
    8: (30, 32, 33), 9: (33,), 13: (33,), 14: (32, 33), 15: (32, 33), 18: (32, 33), 19: (33,),
    20: (32, 33), 22: (32, 33), 23: (25, 27, 29, 32, 33), 24: (25, 27, 31), 25: (31,),
    26: (29, 33), 27: (33,), 28: (31, 33), 29: (32, 33), 30: (32, 33), 31: (32, 33), 32: (33,),
}  # fmt: skip
OFFICER = (9, 14, 15, 18, 20, *range(22, 34))  # who went with person 33; the others with person 0


def club() -> tuple[gnn.Graph, Any]:
    """The graph, with an edge in each direction, and the side of each person."""
    pairs = [(a, b) for a, others in FRIENDS.items() for b in others]
    both = [*pairs, *[(b, a) for a, b in pairs]]
    return gnn.Graph(34, rg.tensor(both).T), rg.tensor([int(i in OFFICER) for i in range(34)])


class Network(nn.Module):
    def __init__(self, g: rg.random.Generator) -> None:
        self.conv1 = gnn.GCNConv(34, 16, generator=g)
        self.conv2 = gnn.GCNConv(16, 2, generator=g)

    def forward(self, x: Any, graph: gnn.Graph) -> Any:
        return self.conv2(rg.relu(self.conv1(x, graph)), graph)


def main(steps: int = 200, seed: int = 0) -> dict[str, float]:
    """Eager steps; the share of the 32 others whose side is found."""
    graph, side = club()
    x, leaders = rg.eye(34), rg.tensor([0, 33])
    model = Network(rg.random.Generator(seed))
    opt = optim.Adam(model, lr=0.01, weight_decay=5e-4)
    for step in range(steps):
        opt.zero_grad()
        loss = F.cross_entropy(model(x, graph)[leaders], side[leaders])
        loss.backward()
        opt.step()
        if step % 40 == 0:
            print(f"step {step:3} loss {loss.item():.4f}")
    with rg.no_grad():
        right = model(x, graph).argmax(axis=1) == side
    accuracy = (right.sum().item() - 2) / 32
    print(f"loss {loss.item():.4f}, {100 * accuracy:.1f} % of the others on the right side")
    return {"loss": loss.item(), "accuracy": accuracy}


if __name__ == "__main__":
    from retrograd.cli.signature import run

    run(main)
