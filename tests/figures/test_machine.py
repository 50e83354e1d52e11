"""What is read of a machine from the files of Linux."""

from pathlib import Path

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
