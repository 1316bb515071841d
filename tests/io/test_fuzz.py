"""Every reader of files, given valid files with another structure: drops, repetitions, exchanges,
odd numbers, odd encodings. It reads them, or raises an error of ours, and never takes long."""

import copy
import io
import json
import random
import re
from dataclasses import asdict

import numpy as np
import pytest

import retrograd as rg
from retrograd.cli.view import read_view
from retrograd.data import read_documents
from retrograd.io import load_safetensors, map_safetensors, read_metadata
from retrograd.io.safetensors import pack
from retrograd.train import gpt
from retrograd.train.graph import read_task
from retrograd.viz import page

WORDS = [
    "-1", "0", "1e400", "1e39", "1.0E+39", "nan", "NAN", "inf", "9" * 30, "9" * 400, "9" * 5000,
    "0x" + "f" * 5000, "", "x", "1.5", "[1, 2]", "'", '"', "{", "}", "(", ")", "[", "]", "&0", "%0",
    "%99", "\0", "\u2028", "\ufeff", "\x1c", "`", "\\u{d800}", "1_0", "é", "٣", "true", "none", "#",
    "//", "*", "(N+1)", "(N+M)*(N+K)", ",", ":", "=", "\r", "\n", "\t", "utf-32", str(2**63),
    f"f32[0, {2**64}]()",
]  # fmt: skip
VALUES: list[object] = [
    None, True, -1, 0, 1, 10**30, 2**63, 1e400, float("nan"), "", "x", [], {}, [[]], {"a": 1},
    "BF16", "F8_E4M3", [0, 2**63], [0, 2**62, 2], [1] * 70, 1.5, "0", ["0", "8"], [0, None],
    [0, [8]],
]  # fmt: skip
PART = re.compile(r"\w+|[^\w\s]|\s+")


def changed_text(text, draw):
    """Lines dropped, repeated, exchanged and cut, parts of lines replaced; then the bytes."""
    lines = text.split("\n")
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        i, j = draw.randrange(len(lines)), draw.randrange(len(lines))
        how = draw.random()
        if how < 0.1:
            lines[i : i + 1] = []
        elif how < 0.2:
            lines.insert(j, lines[i])
        elif how < 0.25:
            lines[i], lines[j] = lines[j], lines[i]
        elif how < 0.3:
            lines[i] = lines[i][: draw.randrange(len(lines[i]) + 1)]
        elif parts := PART.findall(lines[i]):
            k = draw.randrange(len(parts))
            own = [
                draw.choice(WORDS),
                "",
                parts[k] * 2,
                draw.choice(PART.findall(lines[j]) or [""]),
            ]
            parts[k] = draw.choices(own, [6, 1, 1, 2])[0]
            lines[i] = "".join(parts)
        lines = lines or [""]
    content = "\n".join(lines).encode()
    how = draw.choices(range(7), [30, 1, 1, 1, 1, 1, 1])[0]
    at = draw.randrange(len(content) + 1)
    return [
        content, b"\xef\xbb\xbf" + content, content.replace(b"\n", b"\r\n"),
        content.replace(b"\n", b"\r"), content.decode().encode("utf-16"), content[:at],
        content[:at] + b"\xff" + content[at:],
    ][how]  # fmt: skip


def places(value, found):
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for k in keys:
        found.append((value, k))
        places(value[k], found)
    return found


def changed(value, draw):
    """JSON with some of it dropped, replaced, exchanged or renamed."""
    new = copy.deepcopy(value)
    for _ in range(draw.choice([1, 1, 1, 2])):
        box, key = draw.choice(places(new, []))
        how = draw.random()
        if how < 0.2:
            del box[key]
        elif how < 0.8:
            box[key] = copy.deepcopy(draw.choice(VALUES))
        elif how < 0.9:
            other, k = draw.choice(places(value, []))
            box[key] = copy.deepcopy(other[k])
        elif isinstance(box, dict):
            box[draw.choice(["x", "id", "1", "__metadata__"])] = box.pop(key)
    return new


def outcomes(reads):
    """How many of the readings were refused; whatever else than our errors is raised goes on."""
    refused = count = 0
    for read in reads:
        count += 1
        try:
            read()
        except (rg.RetrogradError, OSError):
            refused += 1
    assert 0 < refused < count


def graphs():
    def joined(x, i):
        y = rg.concat([x[i], x[::2]])
        return rg.where(y > 0, rg.exp(y), y).max(), rg.tensor(np.arange(40.0)).sum()

    def looped(x):
        return rg.scan(lambda c, t: (c * t + 1, c), x[0], x)

    def solved(x):
        return rg.linalg.solve(x, x).sum() + rg.fft.fft(x).real.sum()

    first = rg.trace(joined, rg.ones((6, 2)), rg.tensor([1, 2]))
    loop, matrix = rg.trace(looped, rg.ones(5)), rg.trace(solved, rg.ones((3, 3)))
    sized = rg.trace(lambda x: rg.tanh(x).sum(), rg.spec((rg.Dim("N"), 3), "float32"))
    return [first, loop, matrix, sized, matrix.gradient()]


def reading_graphs(folder, draw):
    texts, file = [str(g) for g in graphs()], folder / "a.txt"

    def read():
        graph = rg.load_graph(file)
        graph.check()
        assert rg.Graph.parse(str(graph)) == graph

    for _ in range(300):
        file.write_bytes(changed_text(draw.choice(texts), draw))
        yield read


def reading_documents(folder, draw):
    doc, file = json.loads(json.dumps(graphs()[0].to_document())), folder / "a.json"
    for _ in range(40):
        file.write_text(json.dumps(changed(doc, draw)))
        yield lambda: page(read_view(file))


def reading_safetensors(folder, draw):
    arrays = {"a": np.ones((2, 3)), "b": np.zeros((0, 4), np.float32), "c": np.arange(3)}
    content, file = pack(arrays, {"k": "v", "l": "w"}), folder / "a.safetensors"
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    for _ in range(600):
        text = json.dumps(changed(header, draw)).encode()
        file.write_bytes(len(text).to_bytes(8, "little") + text + content[start:])
        yield lambda: load_safetensors(file)
        yield lambda: map_safetensors(file)
        yield lambda: read_metadata(file)


def reading_text(folder, draw):
    file = folder / "a.txt"
    for _ in range(200):
        file.write_bytes(changed_text("emma\nolivia\nzoë\n", draw))
        yield lambda: read_documents(file)


EDGES = {
    "a.csv": 'source,target,weight\na,b,1\nb,c,2\n# nothing\nc,d,1\n"d",a,0.5\n',
    "a.edges": "a b {'weight': 1}\nb c {'weight': 2.5, 'k': [1, (2, 3)]}\nc d 3\n",
}
NODES = 'node,label,size,"w"\na,x,1,2\nb,x,2,3\nc,y,3,4\nd,,4,5\n'


def reading_tables(folder, draw):
    edges, nodes = "", folder / "nodes.csv"
    for _ in range(300):
        name, edges = draw.choice(list(EDGES.items()))
        table = draw.random() < 0.5
        (folder / name).write_bytes(edges.encode() if table else changed_text(edges, draw))
        nodes.write_bytes(changed_text(NODES, draw) if table else NODES.encode())
        yield lambda name=name: usable(read_task(str(folder / name), None, nodes))


def reading_directories(folder, draw):
    for name, text in {"a.edges": "0 1\n1 2\n", "b.edges": "0 1\n"}.items():
        (folder / name).write_text(text)
    for _ in range(150):
        (folder / "labels.csv").write_bytes(
            changed_text("file,label\na.edges,p\nb.edges,q\n", draw)
        )
        yield lambda: usable(read_task(str(folder), None, None))


def reading_networks(folder, draw):
    networkx = pytest.importorskip("networkx", reason="NetworkX is not installed (extra: gnn)")
    graph = networkx.Graph(name="n")
    for i in range(4):
        graph.add_node(f"n{i}", label="ab"[i % 2], size=i, r=0.5 * i)
    for i in range(4):
        graph.add_edge(f"n{i}", f"n{(i + 1) % 4}", weight=1.5 + i)
    texts = []
    for kind, write in ("graphml", networkx.write_graphml), ("gml", networkx.write_gml):
        for g in graph, networkx.MultiDiGraph(graph):
            if kind == "gml":
                g = networkx.relabel_nodes(g, {})
                for v in g:
                    g.nodes[v]["side"] = g.nodes[v].pop("label")
            file = io.BytesIO()
            write(g, file)
            texts.append((kind, file.getvalue().decode()))
    for _ in range(250):
        kind, text = draw.choice(texts)
        file = folder / f"a.{kind}"
        file.write_bytes(changed_text(text, draw))
        label = "side" if kind == "gml" else "label"
        yield lambda file=file, label=label: usable(read_task(str(file), label, None))


def usable(task):
    """Features and weights of graphs that were read are numbers."""
    for graph in task.graphs:
        for array in [graph.edge_weight, *(graph.node_features or {}).values()]:
            assert array is None or np.isfinite(array.numpy()).all()


@pytest.mark.filterwarnings("ignore:No key type:UserWarning", "ignore::SyntaxWarning")
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "reading",
    [
        reading_graphs, reading_documents, reading_safetensors, reading_text, reading_tables,
        reading_directories, reading_networks,
    ],
)  # fmt: skip
def test_files_of_another_structure_are_read_or_refused(tmp_path, reading, seed):
    draw = random.Random(seed)
    for _ in range(10 if seed else 1):
        outcomes(reading(tmp_path, draw))


def header_of(**entry):
    given = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} | entry
    text = json.dumps({"w": given}).encode()
    return len(text).to_bytes(8, "little") + text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (header_of(data_offsets=["0", "4"]) + b"1234", "header, bytes 8 to .* is damaged"),
        (header_of(data_offsets=[0, None]) + b"1234", "header, bytes 8 to .* is damaged"),
        (header_of(shape=[1] * 70) + b"1234", "tensor 'w' has the shape"),
        (header_of(shape=[0, 2**63], data_offsets=[0, 0]), "tensor 'w' has the shape"),
    ],
)
def test_headers_of_safetensors(tmp_path, content, message):
    (tmp_path / "a").write_bytes(content)
    for read in (load_safetensors, map_safetensors):
        with pytest.raises(rg.FormatError, match=message):
            read(tmp_path / "a")


@pytest.mark.parametrize("shape", [f"0, {2**64}", ", ".join(["1"] * 70)])
def test_constants_that_no_array_can_be(shape):
    inner = "" if shape[0] == "0" else "3.0"
    text = f"graph {{\n%0: f32[{shape}] = constant value=f32[{shape}]({inner})\nreturn %0\n}}\n"
    with pytest.raises(rg.FormatError, match="line 2: expected the shape of an array"):
        rg.Graph.parse(text)


def document(**more):
    nodes = [{"op": "add", "type": "f32[]"} | more]
    head = {"format": "retrograd-graph", "version": 2, "inputs": [], "outputs": []}
    return head | {"nodes": nodes}


def test_nodes_of_a_document_stand_where_their_ids_say(tmp_path):
    for wrong in ("x", 1, True, None):
        (tmp_path / "a.json").write_text(json.dumps(document(id=wrong)))
        with pytest.raises(rg.FormatError, match="node 0, id"):
            read_view(tmp_path / "a.json")


def test_a_name_with_a_nul_is_an_error_of_the_system():
    for use in rg.load_graph, load_safetensors, lambda name: rg.io.save_safetensors(name, {}):
        with pytest.raises(OSError, match="its name holds a NUL"):
            use("a\0b")


@pytest.mark.slow
def test_long_chains_of_origins_are_gone_through_once(tmp_path):
    nodes = [{"op": "add", "type": "f32[]", "origin": i - 1 if i else None} for i in range(20_000)]
    (tmp_path / "a.json").write_text(json.dumps(document() | {"nodes": nodes}))
    assert len(read_view(tmp_path / "a.json")["nodes"]) == 20_000
    nodes[0]["origin"] = 19_999
    (tmp_path / "a.json").write_text(json.dumps(document() | {"nodes": nodes}))
    with pytest.raises(rg.FormatError, match="node 0, origin"):
        read_view(tmp_path / "a.json")


@pytest.mark.slow
def test_as_many_labels_as_nodes(tmp_path):
    (tmp_path / "a.edges").write_text("0 1\n")
    rows = "".join([f"{i},{i}\n" for i in range(40_000)])
    (tmp_path / "nodes.csv").write_text("node,label\n" + rows)
    task = read_task(str(tmp_path / "a.edges"), None, tmp_path / "nodes.csv")
    assert [task.classes[k] for k in task.labels] == [str(i) for i in range(40_000)]


def test_a_tokenizer_of_another_size_than_the_model_is_refused(tmp_path):
    config = gpt.GPTConfig(width=4, heads=1, vocab_size=4)
    parts = {"gpt": asdict(config), "model": gpt.GPT(config, rg.random.Generator(0))}
    for characters in "abc", "ab":
        tokenizer = {"kind": "characters", "characters": characters}
        rg.io.save_checkpoint(tmp_path / "a", **parts, tokenizer=tokenizer)
        if characters == "abc":
            gpt.load_model(tmp_path / "a")
    with pytest.raises(rg.FormatError, match="tokenizer has 3 tokens, its model 4"):
        gpt.load_model(tmp_path / "a")
