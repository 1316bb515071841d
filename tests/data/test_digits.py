import hashlib
from pathlib import Path

import numpy as np

from retrograd.data import bundled_digits, digits


def test_every_digit_is_there_often():
    images, labels = bundled_digits()
    assert images.shape == (1797, 8, 8)
    assert images.dtype == np.uint8
    assert (images.min(), images.max()) == (0, 16)
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_the_page_tells_the_file():
    folder = Path(digits.__file__).parent
    digest = hashlib.sha256((folder / "digits.npz").read_bytes()).hexdigest()
    assert digest in (folder / "DIGITS.md").read_text()
