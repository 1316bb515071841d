"""The loss of a recurrent network with two layers that predicts the next character.

As in ADBench, the gates have diagonal weights, and the states are carried through the sequence;
here by `rg.scan`, so the program does not grow with the length.
"""

from itertools import pairwise

import numpy as np

import retrograd as rg
from examples.problems.problem import Problem

LAYERS = 2


def make(size, rng):
    length, width = size
    main = rng.normal(0, 0.5, (LAYERS, 2, 4, width))  # weights and biases of the four gates
    extra = rng.normal(0, 0.5, (3, width))  # scale of the input, scale and bias of the output
    start = rng.normal(0, 0.5, (LAYERS, 2, width))  # hidden states and cells
    sequence = np.eye(width)[rng.integers(0, width, length)]
    return main, extra, start, sequence


def cell(weight, bias, hidden, memory, x):
    """One layer: gates see the input or the hidden state, each number by itself."""
    forget = rg.sigmoid(x * weight[0] + bias[0])
    ingate = rg.sigmoid(hidden * weight[1] + bias[1])
    outgate = rg.sigmoid(x * weight[2] + bias[2])
    change = rg.tanh(hidden * weight[3] + bias[3])
    memory = memory * forget + ingate * change
    return outgate * rg.tanh(memory), memory


def f(main, extra, start, sequence):
    def step(state, pair):
        x, target = pair
        x = x * extra[0]
        new = []
        for layer in range(LAYERS):
            weight, bias = main[layer, 0], main[layer, 1]
            x, memory = cell(weight, bias, state[layer, 0], state[layer, 1], x)
            new.append(rg.stack([x, memory]))
        scores = x * extra[1] + extra[2]
        return rg.stack(new), (target * rg.log_softmax(scores)).sum()

    _, losses = rg.scan(step, start, (sequence[:-1], sequence[1:]))
    return -losses.mean()


def reference(main, extra, start, sequence):
    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    state, losses = start.copy(), []
    for now, target in pairwise(sequence):
        x = now * extra[0]
        for layer in range(LAYERS):
            w, b = main[layer]
            hidden, memory = state[layer]
            memory = memory * sigmoid(x * w[0] + b[0])
            memory = memory + sigmoid(hidden * w[1] + b[1]) * np.tanh(hidden * w[3] + b[3])
            x = sigmoid(x * w[2] + b[2]) * np.tanh(memory)
            state[layer] = x, memory
        scores = x * extra[1] + extra[2]
        losses.append(scores @ target - np.log(np.exp(scores).sum()))
    return -np.mean(losses)


PROBLEM = Problem(
    "LSTM", ((5, 4), (200, 14), (1000, 128), (10_000, 256)), make, f, reference, wrt=(0, 1, 2)
)
