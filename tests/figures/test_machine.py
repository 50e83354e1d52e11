"""What is read of a machine from the files of Linux."""

from pathlib import Path

import pytest
import torch

from specdec.figures import machine


def test_in_a_container_pages_of_files_count_as_free(monkeypatch) -> None:
    group = "/sys/fs/cgroup/memory."
    files = {
        "/proc/meminfo": "MemTotal: 20000 kB\nMemAvailable: 9000 kB\n",
        f"{group}max": "5000000\n",
        f"{group}current": "4000000\n",
        f"{group}stat": "anon 1\ninactive_file 3000000\n",
    }
    monkeypatch.setattr(Path, "read_text", lambda path: files[str(path)])
    assert machine.free_memory() == 4_000_000
    files[f"{group}max"] = "max\n"
    assert machine.free_memory() == 9000 * 1024


@pytest.mark.parametrize("gpu", [None, 300])
def test_a_model_has_the_room_of_its_device(gpu: int | None, monkeypatch) -> None:
    monkeypatch.setattr(machine, "gpu_memory", lambda: gpu)
    monkeypatch.setattr(machine, "free_memory", lambda: 200)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: {"cuda:1": (100, 300)}[device])
    assert [machine.memory_of(device) for device in ("cpu", "auto", "cuda:1")] == [200, gpu or 200, 100]
    monkeypatch.setattr(machine, "free_memory", lambda: None)
    assert machine.memory_of("cpu") == machine.UNLIMITED
