"""Running the blocks of a page: a page that is not true is found out."""

import pytest

from scripts import pages

PAGE = """\
# A page

```text title="numbers.txt"
1 2 3
```

```python title="double.py"
import sys
print(2 * float(sys.argv[1]))
```

```python
from pathlib import Path
numbers = [int(x) for x in Path("numbers.txt").read_text().split()]
print("the sum is", sum(numbers) / 7, "of", len(numbers))
```

```text
the sum is 0.857142 of 3
```

Text between.

```python
Path("numbers.txt").write_text("")
print([*Path().iterdir()] != [])
```

```text
True
```

```python
print(12, "us")
```

<!-- numbers vary -->

```text
345 us
```
"""


COMMAND = (
    PAGE
    + """
```sh
# twice
python double.py 1.5
```

```text
3.0
```
"""
)


@pytest.fixture
def page(tmp_path):
    path = tmp_path / "page.md"

    def write(old="", new="", text=PAGE):
        assert old in text
        path.write_text(text.replace(old, new) if old else text, encoding="utf-8")
        return path

    return write


def test_a_page_that_is_true(page, tmp_path):
    assert pages.differences(page(text=COMMAND), tmp_path) == []
    assert pages.renewed(page(), tmp_path) == PAGE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.857142", "0.86"),
        ("of 3", "of 4"),
        ("the sum is 0", "a sum is 0"),
        ("```text\nTrue\n```", ""),
        ("345 us", "345 ms"),
        ("<!-- numbers vary -->", ""),
        ("1 2 3", "1 2 4"),
    ],
)
def test_a_page_that_is_not(page, tmp_path, old, new):
    (what,) = pages.differences(page(old, new), tmp_path)
    assert what.startswith("page.md: after\n")
    path = page(old, new)
    path.write_text(pages.renewed(path, tmp_path), encoding="utf-8")
    assert pages.differences(path, tmp_path) == []


@pytest.mark.parametrize(
    ("here", "there", "agree"),
    [
        ("0.862", "0.863", True),  # the last digit
        ("0.862", "0.864", False),
        ("0.86", "0.862", False),
        ("4.0", "4.1", False),
        ("1234.5", "1235.0", True),  # three digits
        ("1.0e-3", "1.1e-3", False),
        ("-0.5", "0.5", False),
    ],
)
def test_how_near_numbers_are(here, there, agree):
    assert pages.close(here, there) is agree


def test_code_that_fails_names_its_block(page, tmp_path):
    with pytest.raises(FileNotFoundError) as info:
        pages.differences(page('title="numbers.txt"', 'title="others.txt"'), tmp_path)
    assert "block_1.py" in {entry.frame.code.raw.co_filename for entry in info.traceback}
    with pytest.raises(RuntimeError, match=r"double.py no ended with 1(.|\n)*could not convert"):
        pages.differences(page("double.py 1.5", "double.py no", COMMAND), tmp_path)
