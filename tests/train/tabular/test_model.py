import numpy as np

import retrograd as rg
from retrograd.train.tabular.model import TabularNetwork, loss_of


def test_shapes_with_and_without_categories():
    with rg.backend("reference"):
        for numbers, sizes in ((3, [4, 900]), (0, [4]), (3, [])):
            model = TabularNetwork(numbers, sizes, 2, 8, 2, 0.0, rg.random.Generator(0)).eval()
            x = np.zeros((5, numbers), np.float32)
            k = np.zeros((5, len(sizes)), np.int64)
            assert model(x, k).shape == (5, 2)
            assert [e.weight.shape[1] for e in model.embeddings] == [
                min(50, (n + 1) // 2 + 1) for n in sizes
            ]


def test_losses_are_those_of_classes_and_of_numbers():
    with rg.backend("reference"):
        model = TabularNetwork(1, [], 1, 4, 1, 0.0, rg.random.Generator(0)).eval()
        batch = np.ones((3, 1), np.float32), np.zeros((3, 0), np.int64)
        y = model(*batch).numpy()[:, 0]
        assert loss_of(model, (*batch, y), False).item() == 0
        far = loss_of(model, (*batch, y + 3), False).item()
        np.testing.assert_allclose(far, 2.5, rtol=1e-6)
        assert loss_of(model, (*batch, np.zeros(3, np.int64)), True).item() == 0  # one class
