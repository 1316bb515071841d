"""Pickles are data: what Python writes of data is read as Python reads it, and nothing is run."""

import pickle
import struct
from typing import Any

import pytest

from retrograd.errors import FormatError
from retrograd.io.pickle_reader import Named, PickleReader


def read(content, makers=None, constants=lambda name: False, find=lambda pid: pid):
    return PickleReader(content, "the file", makers or {}, constants, find).value()


VALUE: dict[Any, Any] = {
    "a": [1, -1, 255, 256, 65535, 65536, -(2**31), 2**31, 2**70, -(2**70), 0, True, False, None],
    1: (1.5, float("inf"), -0.0, "é\n", "x" * 300, "", b"", b"\x00\xff" * 200),
    "nested": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], {}, [[[]]]),
}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_data_are_read(protocol):
    value = dict(VALUE)
    makers = {"_codecs.encode": lambda text, how: text.encode(how), "__builtin__.bytes": bytes}
    assert read(pickle.dumps(value, protocol), makers) == value


def test_keys_are_plain():
    """Many whole numbers with one hash would take long to put into a dictionary."""
    wrong: list[Any] = [{2**64: 1}, {-(2**63) - 1: 1}, {2**64}, {(1,): 2}, {frozenset(): 1}]
    for value in wrong:
        with pytest.raises(FormatError, match=r"is a key|is none that weights consist of"):
            read(pickle.dumps(value, 4))
    keys: dict[Any, int] = {"a": 1, 2: 2, 2.5: 3, None: 4, b"b": 5, True: 6, -(2**63): 7}
    assert read(pickle.dumps(keys, 4)) == keys


def test_what_is_shared_stays_shared():
    x = [1]
    found = read(pickle.dumps([x, x], 4))
    assert found == [[1], [1]]
    assert found[0] is found[1]


def test_names_are_those_that_are_listed():
    content = pickle.dumps(complex(1, 2), 2)
    name = "__builtin__.complex"
    assert read(content, {name: complex}) == 1 + 2j
    with pytest.raises(FormatError, match=f"it names {name}"):
        read(content)
    found = read(b"\x80\x02ctorch\nfloat32\n.", constants=lambda n: n == "torch.float32")
    assert isinstance(found, Named)
    assert repr(found) == "torch.float32"


RUNS = [
    b"cos\nsystem\n(X\x07\x00\x00\x00echo hitR.",
    b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04echo\x85R.",
    b"cbuiltins\neval\n(X\x01\x00\x00\x001tR.",
    b"(X\x04\x00\x00\x00echoios\nsystem\n.",  # INST
    b"(cos\nsystem\nX\x04\x00\x00\x00echoo.",  # OBJ
    b"\x80\x02\x82\x01.",  # EXT1
    b"Pkey\n.",  # PERSID
    b"I1\n.",  # numbers as text, of protocol 0
    b"}}b}R.",
    b"]N}b.",
    b"cmade\nlist\n)R}b.",
    b"cmade\nlist\n)\x81.",  # NEWOBJ
    b"cmade\nlist\ncmade\nlist\nR.",
    b"cmade\nlist\n.R.",
    b"NNR.",
    b"X\x04\x00\x00\x00made)R.",
    b"}cmade\nlist\nNs.",
]


@pytest.mark.parametrize("content", RUNS)
def test_nothing_is_run(content):
    def make(*args):
        assert type(args) is tuple
        return list(*args)

    try:
        found = read(content, {"made.list": make})
    except FormatError:
        return
    assert isinstance(found, Named), content


DAMAGED = [
    b"", b".", b"0.", b"a.", b"e.", b"t.", b"u.", b"s.", b"R.", b"b.", b"Q.", b"(.",
    b"]N.x"[:2], b"X\xff\xff\xff\xffab.", b"\x8d" + b"\xff" * 8 + b".", b"B\xff\xff\xff\x7f.",
    b"\x8a\xff.", b"J\x00.", b"q\x01.", b"h\x01.", b"j\xff\xff\xff\xff.", b"\x80\x09N.",
    b"}(Nu.", b"}]Ns.", b"}(]Nu.", b"NNa.", b"NNs.", b"N(Nu.", b"N(Ne.", b"\x8f(]\x90.", b"cos",
    b"cos\nsystem", b"\x93.", b"NN\x93.", b"X\x01\x00\x00\x00\xff.", b"\xfe.", b"\x95\x01.",
    b"NN\x85", b"(N\x86.", b"\x85.",
]  # fmt: skip


@pytest.mark.parametrize("content", DAMAGED)
def test_what_is_damaged_is_refused(content):
    with pytest.raises(FormatError, match="the file"):
        read(content)


def test_claims_take_no_memory():
    for code, form in ((b"X", "<I"), (b"B", "<I"), (b"\x8d", "<Q"), (b"\x8e", "<Q")):
        most = (1 << 8 * struct.calcsize(form)) - 1
        with pytest.raises(FormatError, match="cut"):
            read(code + struct.pack(form, most) + b"a.")
    assert read(b"Nr\xff\xff\xff\x7f.") is None  # a place in the memo, of which there is one


def test_one_value_after_the_other():
    reader = PickleReader(
        pickle.dumps(1, 2) + pickle.dumps([2], 2) + b"rest", "f", {}, lambda name: False, str
    )
    assert (reader.value(), reader.value()) == (1, [2])
    assert reader.content[reader.at :] == b"rest"
