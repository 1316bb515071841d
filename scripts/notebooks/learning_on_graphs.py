# %% [markdown]
# # Learning on graphs
#
# Zachary's karate club: 34 people, 78 friendships, and a quarrel that split the club in two.
# The sides of the two leaders are known, those of the others are to be found. The picture
# shows who is a friend of whom.
# %%
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
pairs = [(a, b) for a, others in FRIENDS.items() for b in others]
graph = gnn.Graph(34, rg.tensor([*pairs, *[(b, a) for a, b in pairs]]).T)
officer = (9, 14, 15, 18, 20, *range(22, 34))  # who went with person 33
side = rg.tensor([int(i in officer) for i in range(34)])
graph


# %% [markdown]
# ## A graph convolutional network
#
# People have no features: each is told apart by its number alone, so all that is learned
# comes along the edges.
# %%
class Network(nn.Module):
    def __init__(self, g):
        super().__init__()
        self.conv1 = gnn.GCNConv(34, 16, generator=g)
        self.conv2 = gnn.GCNConv(16, 2, generator=g)

    def forward(self, x, graph):
        return self.conv2(rg.relu(self.conv1(x, graph)), graph)


model = Network(rg.random.Generator(0))
model
# %%
x, leaders = rg.eye(34), rg.tensor([0, 33])
opt = optim.Adam(model, lr=0.01, weight_decay=5e-4)
for _ in range(200):
    opt.zero_grad()
    loss = F.cross_entropy(model(x, graph)[leaders], side[leaders])
    loss.backward()
    opt.step()

with rg.no_grad():
    scores = model(x, graph)
right = (scores.argmax(axis=1) == side).sum().item() - 2
print(f"{right} of the 32 others are on the right side")
# %% [markdown]
# What the hidden layer says of each person, those who went with the officer last:
# %%
with rg.no_grad():
    hidden = rg.relu(model.conv1(x, graph))
hidden[rg.argsort(side, stable=True)].T


# %% [markdown]
# ## The gradient of every edge
#
# Weights of edges are arguments like others: which friendships does the score of person 8
# depend on?
# %%
def score(weights):
    hidden = rg.relu(model.conv1(x, graph, weights))
    return model.conv2(hidden, graph, weights)[8, 1]


by_edge = rg.grad(score)(rg.ones((graph.num_edges,)))
strongest = rg.argsort(-rg.abs(by_edge))[:4].tolist()
[tuple(graph.edges[:, e].tolist()) for e in strongest]
# %% [markdown]
# ## A network that is a graph
#
# A state for every node of an acyclic graph, each from the states of those before it. The
# gradient goes through the structure, to the weights of the edges.
# %%
edges = rg.tensor([[0, 0, 1, 2, 1], [1, 2, 3, 3, 4]])
inputs = rg.tensor([1.0, 0.0, 0.0, 0.0, 0.5])[:, None]


def last(weights):
    states = gnn.dag_scan(lambda a, own: rg.tanh(a + own), gnn.Graph(5, edges), inputs, weights)
    return states[3, 0]


rg.grad(last)(rg.ones((5,)))
