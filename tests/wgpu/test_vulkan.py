"""Whether there is a GPU, without the package that would use it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from retrograd import wgpu
from retrograd.wgpu import vulkan
from tests.wgpu.gpu import needs_gpu


@needs_gpu
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Vulkan is asked on Linux")
def test_vulkan_tells_what_wgpu_finds() -> None:
    from retrograd.wgpu.device import adapter

    assert adapter() is not None
    assert vulkan.devices() >= 1  # type: ignore[operator]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Vulkan is asked on Linux")
def test_no_loader_and_no_driver_are_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vulkan, "LOADER", "libvulkan_that_is_not_there.so")
    assert vulkan.devices() == 0
    monkeypatch.setattr(wgpu, "is_installed", lambda name: True)
    assert "mesa-vulkan-drivers" in str(wgpu.missing.__wrapped__())


def test_elsewhere_the_package_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert vulkan.devices() is None
    monkeypatch.setattr(wgpu, "is_installed", lambda name: True)
    for found, said in ((object(), False), (None, True)):
        monkeypatch.setattr(wgpu, "adapter", lambda found=found: found)
        assert (wgpu.missing.__wrapped__() is not None) is said


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Vulkan is asked on Linux")
def test_a_machine_without_a_driver_says_what_to_install() -> None:
    """The loader is there, and finds no driver: nothing hangs, and other backends go on."""
    pytest.importorskip("wgpu", reason="the extra wgpu is not installed")
    program = (
        "import retrograd as rg\n"
        "assert 'wgpu' not in rg.backends()\n"
        "try:\n    rg.backend('wgpu')\n"
        "except rg.BackendError as error:\n    print(error)\n"
        "assert (rg.ones(3) * 2).tolist() == [2.0] * 3\n"
    )
    nowhere = dict.fromkeys(("VK_DRIVER_FILES", "VK_ICD_FILENAMES"), "/nowhere.json")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60,
        env={**os.environ, **nowhere}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "no GPU, or no driver for it" in done.stdout
    assert "mesa-vulkan-drivers" in done.stdout


@pytest.mark.slow
def test_a_list_of_backends_imports_none() -> None:
    program = (
        "import sys, retrograd as rg\nrg.backends()\nassert not {'jax', 'wgpu'} & set(sys.modules)"
    )
    if not sys.platform.startswith("linux"):
        pytest.skip("Vulkan is asked on Linux")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
