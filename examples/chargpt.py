"""A character GPT on tensors, trained on the bundled names, then sampled.

    python -m examples.chargpt [--steps 600] [--seed 0]

`examples/microgpt.py` writes such a model in single numbers; this is how one writes it for speed.
The text is one tensor in the program, of which each step cuts windows of its own, and all steps
between two lines of progress are one program: a `rg.scan` that carries model, optimizer and
generator.
"""

from typing import Any

import retrograd as rg
from retrograd import data, nn, optim
from retrograd.nn import functional as F

WIDTH, HEADS, LAYERS, CONTEXT, BATCH, EVERY = 64, 4, 2, 16, 32, 50


class GPT(nn.Module):
    """Logits `[n, T, vocabulary]` of the next character after each of `[n, T]`, T <= CONTEXT."""

    def __init__(self, vocabulary: int, g: rg.random.Generator) -> None:
        self.characters = nn.Embedding(vocabulary, WIDTH, generator=g)
        self.places = nn.Embedding(CONTEXT, WIDTH, generator=g)
        options: Any = {"dropout": 0.0, "batch_first": True, "norm_first": True, "generator": g}
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, activation="gelu", **options)
            for _ in range(LAYERS)
        )
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, vocabulary, bias=False, generator=g)

    def forward(self, tokens: Any) -> Any:
        n = tokens.shape[1]
        future = rg.triu(rg.ones((n, n)), k=1) > 0  # what a character must not look at
        x = self.characters(tokens) + self.places.weight[:n]
        for layer in self.layers:
            x = layer(x, src_mask=future, is_causal=True)
        return self.head(self.norm(x))


def loss(model: GPT, windows: Any) -> Any:
    """Cross-entropy of each character `[n, T + 1]` but the first of a window."""
    return F.cross_entropy(model(windows[:, :-1]).mT, windows[:, 1:])


def text(names: list[str], tokenizer: data.CharTokenizer) -> Any:
    """Names one after the other, with a mark before each and after the last."""
    return rg.tensor([t for name in names for t in tokenizer.encode(name, end=False)])


def sample(model: GPT, mark: int, g: rg.random.Generator, n: int, temperature: float = 0.7) -> Any:
    """n names `[n, CONTEXT]`, character by character."""

    def step(carry: Any, at: Any) -> Any:
        tokens, g = carry
        new = g.categorical(model(tokens)[:, at] / temperature)
        place = rg.minimum(at + 1, rg.asarray(CONTEXT - 1))
        return (tokens.at[:, place].set(new), g), new

    start = rg.full((n, CONTEXT), mark)
    return rg.scan(step, (start, g), rg.arange(CONTEXT))[1].T


def main(steps: int = 600, seed: int = 0) -> dict[str, float]:
    """The loss on names that were held out, before and after."""
    g = rg.random.Generator(seed)
    names, held_out = data.split_documents(data.bundled_names(), seed)
    tokenizer = data.CharTokenizer.of(names)
    tokens, others = text(names, tokenizer), text(held_out, tokenizer)
    offsets, count = rg.arange(CONTEXT + 1), others.shape[0] // (CONTEXT + 1)
    held = others[: count * (CONTEXT + 1)].reshape((count, CONTEXT + 1))
    model = GPT(tokenizer.vocab_size, g)
    opt = optim.AdamW(lr=optim.schedules.cosine(3e-3, steps, warmup=steps // 20))

    def step(carry: Any, _: None) -> Any:
        model, state, g = carry
        starts = g.randint(0, tokens.shape[0] - CONTEXT, (BATCH, 1))
        value, grads = rg.value_and_grad(loss)(model, tokens[starts + offsets])
        return (*opt.update(model, grads, state), g), value

    train = rg.jit(lambda carry: rg.scan(step, carry, length=min(EVERY, steps)), donate=("carry",))
    test = rg.jit(loss)
    first = test(model, held).item()
    carry = (model, opt.init(model), g)
    for i in range(0, steps, EVERY):
        carry, losses = train(carry)
        print(f"step {i:3} loss {losses.mean().item():.4f}")
    model, _, g = carry
    last = test(model, held).item()
    print(f"loss on held-out names {first:.3f} before, {last:.3f} after")
    for row in sample(model, tokenizer.bos, g, 10).tolist():
        row = row[: row.index(tokenizer.bos)] if tokenizer.bos in row else row
        print(tokenizer.decode(row), end=" ")
    print()
    return {"first": first, "last": last}


if __name__ == "__main__":
    from retrograd.cli.signature import run

    run(main)
