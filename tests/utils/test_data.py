"""Imports as scripts of PyTorch write them."""

import retrograd as rg


def test_the_names_are_those_of_data() -> None:
    import retrograd.utils.data
    from retrograd.utils.data import DataLoader, Dataset, random_split

    assert DataLoader is rg.data.DataLoader
    assert Dataset is rg.data.Dataset
    assert random_split is rg.data.random_split
    assert rg.utils.data is retrograd.utils.data
    assert set(rg.data.__all__) == set(rg.utils.data.__all__)
