from retrograd.ir import Dim, expressed, solve


def test_values_that_follow():
    n, m, k = Dim("N"), Dim("M"), Dim("K")
    assert solve([(2 * n, 6), (n * m + 1, 13), (5, 5)]) == {"N": 3, "M": 4}
    assert solve([(n + k, 9), (k, 4), (k, 5)]) == {"K": 4, "N": 5}  # nothing is checked
    assert solve([(2 * n, 5), (m + 3, 1)]) == {"N": 2, "M": 0}
    assert solve([(n * n, 9), (m // 2, 1), (n * k, 0)]) == {}
    assert solve([(n, 0), (n * m, 0)]) == {"N": 0}


def test_sizes_by_others():
    n, m = Dim("N"), Dim("M")
    known = [(n, (4, 6, 9)), (m, (5, 3, 7))]
    for values, size in (
        ((4, 6, 9), n), ((12, 18, 27), 3 * n), ((2, 3, 4), n // 2), ((3, 5, 8), n - 1),
        ((40, 36, 126), 2 * n * m), ((16, 36, 81), n * n), ((9, 9, 16), n + m),
        ((105, 103, 107), m + 100), ((12, 10, 7), 16 - n), ((1, 5, 2), None), ((4, 4, 5), None),
    ):  # fmt: skip
        assert expressed(values, known) == size
    assert expressed((1, 2), []) is None
