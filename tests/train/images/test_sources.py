import numpy as np
import pytest

import retrograd as rg
from retrograd.train.images import digits, read_folder


def test_pixels_are_from_0_to_1():
    found = digits()
    x = found.pixels(np.arange(20))
    assert x.shape == (20, 1, 8, 8)
    assert (x.min(), x.max(), x.dtype) == (0, 1, np.float32)


def test_folders_are_classes(tmp_path):
    pillow = pytest.importorskip("PIL.Image", reason="pillow is not installed (extra: data)")
    for name, mode, size in (("dark", "L", (9, 7)), ("light", "RGBA", (5, 30))):
        (tmp_path / name).mkdir()
        for i in range(3):
            white = 255 if name == "light" else 0
            colour = white if mode == "L" else (white,) * 4
            pillow.new(mode, size, colour).save(tmp_path / name / f"{i}.png")
    found = read_folder(tmp_path, size=8)
    assert found.classes == ["dark", "light"]
    assert isinstance(found.images, np.ndarray)
    assert found.images.shape == (6, 3, 8, 8)
    assert found.images[:3].max() == 0
    assert found.images[3:].min() == 255
    (tmp_path / "light" / "4.png").write_bytes(b"no image")
    with pytest.raises(rg.FormatError, match=r"4\.png"):
        read_folder(tmp_path)


def test_one_class_is_an_error(tmp_path):
    pillow = pytest.importorskip("PIL.Image", reason="pillow is not installed (extra: data)")
    (tmp_path / "cat").mkdir()
    pillow.new("RGB", (4, 4)).save(tmp_path / "cat" / "1.png")
    with pytest.raises(rg.FormatError, match="one class only, 'cat'"):
        read_folder(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_folder(tmp_path / "nothing")
