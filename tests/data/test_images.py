"""Images in folders."""

import sys

import numpy as np
import pytest

import retrograd as rg
from retrograd.data import DataLoader, ImageFolder, read_image
from retrograd.data.transforms import Compose, Normalize, RandomCrop, ToFloat

Image = pytest.importorskip("PIL.Image")
PIXELS = np.random.default_rng(0).integers(0, 256, (4, 6, 5, 3)).astype(np.uint8)


@pytest.fixture
def root(tmp_path):
    for i, name in enumerate(("cat/b.png", "cat/deep/a.PNG", "dog/c.png", "dog/d.png")):
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(PIXELS[i]).save(path, "png")
    (tmp_path / "pets" / "dog" / "notes.txt").write_text("no image")
    return tmp_path / "pets"


def test_folders_are_classes(root):
    data = ImageFolder(root)
    assert (data.classes, data.class_to_idx) == (["cat", "dog"], {"cat": 0, "dog": 1})
    assert (data.targets, len(data)) == ([0, 0, 1, 1], 4)
    for i, (pixels, target) in enumerate(data):
        assert np.array_equal(pixels, np.moveaxis(PIXELS[i], -1, 0))
        assert target == data.targets[i]
    ((x, y),) = DataLoader(data, 4, num_workers=1)
    assert (x.shape, x.dtype, y.tolist()) == ((4, 3, 6, 5), rg.uint8, [0, 0, 1, 1])
    assert str(data[-1]) == str(data[3])


def test_modes_sizes_and_transforms(root):
    gray, _ = ImageFolder(root, mode="L", size=(8, 9))[0]
    assert gray.shape == (1, 8, 9)
    assert read_image(root / "cat" / "b.png", None).shape == (3, 6, 5)
    t = Compose([RandomCrop(4), ToFloat(), Normalize([0.5] * 3, [0.5] * 3)])
    loader = DataLoader(ImageFolder(root, t, lambda c: c + 5), 4)
    (x, y), (again, _) = next(iter(loader)), next(iter(loader))
    assert (x.shape, y.tolist()) == ((4, 3, 4, 4), [5, 5, 6, 6])
    assert abs(x).max().item() <= 1
    assert x.tolist() != again.tolist()


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_pixels_are_those_of_pillow(root, mode):
    theirs = np.asarray(Image.open(root / "dog" / "c.png").convert(mode).resize((4, 3), 2))
    mine = read_image(root / "dog" / "c.png", mode, (3, 4))
    assert np.array_equal(mine if mode == "L" else np.moveaxis(mine, 0, -1), theirs[None]
                          if mode == "L" else theirs)  # fmt: skip


def test_what_is_refused(root, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        ImageFolder(tmp_path / "none")
    with pytest.raises(rg.FormatError, match="has no folders"):
        ImageFolder(root / "dog")
    with pytest.raises(rg.OptionError, match="mode is"):
        ImageFolder(root, mode="CMYK")
    (root / "eel").mkdir()
    with pytest.raises(rg.FormatError, match=r"the class 'eel' in .* has no images"):
        ImageFolder(root)
    assert len(ImageFolder(root, allow_empty=True).classes) == 3
    (root / "eel" / "e.png").write_bytes((root / "dog" / "c.png").read_bytes()[:60])
    (root / "eel" / "f.png").write_bytes(b"text")
    data = ImageFolder(root)
    for i in (4, 5):
        with pytest.raises(rg.FormatError, match="is no image that can be read"):
            data[i]
    (root / "eel" / "f.png").unlink()
    with pytest.raises(FileNotFoundError):
        data[5]
    with pytest.raises(IndexError):
        data[6]


def test_without_pillow(monkeypatch, root):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(rg.BackendError, match=r"pip install 'retrograd\[data\]'"):
        ImageFolder(root)
