"""In the kernel of a notebook: what cells show, where errors come from, what is run again."""

import os
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("ipykernel")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
SOURCE = Path(__file__).parents[2] / "src"


def run(*cells, folder=None):
    """The outputs of cells, run one after the other."""
    made = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(textwrap.dedent(c).strip()) for c in cells]
    )
    client = nbclient.NotebookClient(made, timeout=120, kernel_name="python3", allow_errors=True)
    paths = [str(SOURCE), *([str(folder)] if folder else [])]
    client.execute(env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    return [c.outputs for c in made.cells]


def plain(outputs):
    return "".join(o.get("text", "") or o.get("data", {}).get("text/plain", "") for o in outputs)


def test_errors_and_nodes_name_the_cell():
    _, error, source = run(
        "import retrograd as rg",
        "x = 1\nrg.ones((2, 3)) @ rg.ones((2, 3))",
        "print(rg.trace(lambda x: x * 2, rg.spec(())).nodes[-1].source)",
    )
    assert error[0].ename == "ShapeError"
    assert "Cell In[2], line 2 in <module>: rg.ones((2, 3)) @ rg.ones((2, 3))" in error[0].evalue
    assert plain(source).startswith("Cell In[3], line 1 in <lambda>: print(")


def test_a_function_that_is_defined_again_is_called_anew():
    found = run(
        "import retrograd as rg\nx = rg.ones(2)",
        "def helper(x): return x * 2",
        "@rg.jit\ndef step(x): return helper(x)\nstep(x).tolist()",
        "step(x).tolist()",
        "def helper(x): return x * 3\nstep(x).tolist()",
        "print(step.cache_stats()['compilations'])",
    )
    assert [plain(o) for o in found[2:]] == ["[2.0, 2.0]", "[2.0, 2.0]", "[3.0, 3.0]", "2\n"]


MODULE = """
import retrograd as rg
def helper(x): return x * {n}
class Net(rg.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = rg.nn.Parameter(rg.ones(2))
    def forward(self, x): return self.weight * x * {n}
"""


def test_so_are_modules_that_are_reloaded(tmp_path):
    (tmp_path / "mine.py").write_text(MODULE.format(n=10), encoding="utf-8")
    changed = MODULE.format(n=20)
    *_, before, _, after = run(
        "%load_ext autoreload\n%autoreload 2",
        "import retrograd as rg, mine\nfrom mine import helper\nx, net = rg.ones(2), mine.Net()",
        """
        f, g = rg.jit(lambda x: helper(x)), rg.jit(lambda x: mine.helper(x))
        h = rg.jit(lambda m, x: m(x))
        def now():
            with rg.no_grad():
                return [k.tolist() for k in (f(x), g(x), h(net, x))]
        """,
        "now()",
        f"import time\ntime.sleep(1.1)\nopen(mine.__file__, 'w').write({changed!r})",
        "now()",
        folder=tmp_path,
    )
    assert plain(before) == str([[10.0, 10.0]] * 3)
    assert plain(after) == str([[20.0, 20.0]] * 3)


FIT = """
import os, signal, threading
import retrograd as rg
model = rg.nn.Linear(2, 1)
def loss(m, b): return (m(b) ** 2).mean()
def fit(**options):
    return rg.train.fit(model, loss, rg.ones((64, 2)), optimizer=rg.optim.SGD(lr=0.01),
                        batch_size=8, **options)
"""


def test_training_shows_a_bar_and_ends_in_good_order_when_interrupted():
    _, bar, interrupted, after = run(
        FIT,
        "run = fit(epochs=3)",
        """
        threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
        run = fit(epochs=10_000_000, progress=False)
        """,
        "print(run.stopped, run.step > 0, rg.ones(2).sum().item())",
    )
    assert len(bar) == 1  # one output, which was replaced
    assert '<progress value="24" max="24">' in bar[0].data["text/html"]
    assert plain(bar).startswith("step 24/24  loss ")
    assert not interrupted
    assert plain(after) == "interrupted True 2.0\n"


def test_the_explorer_and_the_dashboard_appear_below_the_cell():
    _, shown, board = run(
        "import retrograd as rg, webbrowser\nwebbrowser.open = None  # whoever calls it fails",
        "path = rg.trace(lambda x: x * x, rg.spec(())).show(2.0)",
        """
        with rg.dashboard("mine") as d:
            for i in range(5):
                d.log(i, loss=1 / (i + 1))
            d.message("<done>")
        """,
    )
    assert shown[0].data["text/html"].startswith("<iframe srcdoc=")
    assert len(board) == 1
    html = board[0].data["text/html"]
    assert "step 4" in html
    assert "&lt;done&gt;" in html


def test_cells_that_wait_and_threads():
    _, awaited, threads = run(
        "import asyncio\nimport retrograd as rg\nx = rg.tensor([1.0, 2.0], requires_grad=True)",
        """
        async def go():
            with rg.no_grad():
                await asyncio.sleep(0)
                return (x * 2).requires_grad, rg.ones(2).sum().item()
        print(await go(), (x * 2).requires_grad)
        """,
        """
        work = [asyncio.to_thread(rg.grad(lambda x: (x * x).sum()), x) for _ in range(4)]
        print([g.tolist() for g in await asyncio.gather(*work)])
        """,
    )
    assert plain(awaited) == "(False, 2.0) True\n"
    assert plain(threads) == f"{[[2.0, 4.0]] * 4}\n"
