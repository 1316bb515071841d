from retrograd.ir import Dim, solve


def test_values_that_follow():
    n, m, k = Dim("N"), Dim("M"), Dim("K")
    assert solve([(2 * n, 6), (n * m + 1, 13), (5, 5)]) == {"N": 3, "M": 4}
    assert solve([(n + k, 9), (k, 4), (k, 5)]) == {"K": 4, "N": 5}  # nothing is checked
    assert solve([(2 * n, 5), (m + 3, 1)]) == {"N": 2, "M": 0}
    assert solve([(n * n, 9), (m // 2, 1), (n * k, 0)]) == {}
    assert solve([(n, 0), (n * m, 0)]) == {"N": 0}
