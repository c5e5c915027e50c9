"""Files of a data directory that others can reach: what is refused or warned of, and what a mounted secret may be."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from svc.kernel.store.directory import Opened, open_directory, risky_modes
from svc.kernel.store.files import durable_files
from svc.kernel.values.errors import DirectoryError
from svc.world import World

PEPPER = b"p" * 32


def opened(directory: Path, pepper_file: Path | None = None, map_bytes: int = 64 << 20) -> Opened:
    world = World.real()
    return open_directory(
        directory, world.run_sync, world.entropy, pepper_file=pepper_file, durable=False, map_bytes=map_bytes
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    opened(tmp_path / "data").store.close()
    return tmp_path / "data"


def test_a_pepper_gets_its_name_only_when_it_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def killed(source: Path, target: Path) -> None:
        raise KeyboardInterrupt(f"{source} has no second name {target} yet")

    with monkeypatch.context() as patched:
        patched.setattr("os.link", killed)
        with pytest.raises(KeyboardInterrupt):
            opened(tmp_path / "data")
    assert not list((tmp_path / "data").glob("pepper*"))
    opened(tmp_path / "data").store.close()
    assert [path.name for path in (tmp_path / "data").glob("pepper*")] == ["pepper"]


@pytest.mark.parametrize("name", ["", "store", "pepper"])
def test_a_world_writable_path_is_rejected_with_the_command_that_fixes_it(data: Path, name: str):
    path = data / name
    mode = path.stat().st_mode & 0o777
    path.chmod(mode | 0o002)
    with pytest.raises(DirectoryError, match=rf"{path} can be written by everybody.*: chmod o-w {path}$"):
        opened(data)
    path.chmod(mode)
    opened(data).store.close()
    assert risky_modes(data) == []


@pytest.mark.parametrize(
    ("name", "mode", "hint"),
    [
        ("", 0o770, "chmod g-w {}"),
        ("store", 0o770, "chmod g-w {}"),
        ("pepper", 0o660, "chmod g-w {}"),
        ("pepper", 0o644, "chmod 600 {}"),
    ],
)
def test_risky_modes_of_a_volume_are_warned_about(data: Path, name: str, mode: int, hint: str):
    path = data / name
    path.chmod(mode)
    opened(data).store.close()
    (risk,) = risky_modes(data)
    assert risk.endswith(hint.format(path))


def test_a_pepper_in_the_data_directory_is_not_a_link(data: Path, tmp_path: Path):
    (data / "pepper").rename(tmp_path / "elsewhere")
    (data / "pepper").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DirectoryError, match="pepper is a symbolic link: put the file itself there, or name it with"):
        opened(data)
    opened(data, tmp_path / "elsewhere").store.close()


def test_a_folder_in_place_of_the_pepper_is_named(data: Path, tmp_path: Path):
    """A container whose secret is not there is given an empty folder."""
    with pytest.raises(DirectoryError, match=rf"cannot use {tmp_path}: Is a directory"):
        opened(data, tmp_path)


def locked(directory: Path) -> None:
    with durable_files.locked(directory / "serve.lock"):
        pass


@pytest.mark.parametrize(
    ("number", "step"),
    [
        (errno.EACCES, "run the command as the user to whom it belongs, or chown it"),
        (errno.EPERM, "run the command as the user to whom it belongs, or chown it"),
        (errno.EROFS, "look into dmesg for the reason, then remount it: mount -o remount,rw"),
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EISDIR, None),
    ],
)
@pytest.mark.parametrize("use", [opened, locked, durable_files.make_folder])
def test_a_file_or_folder_that_the_system_refuses_says_what_to_do(
    use: Callable[[Path], Any], number: int, step: str | None, data: Path, monkeypatch: pytest.MonkeyPatch
):
    def refuse(path: Path, *_: Any, **__: Any) -> NoReturn:
        raise OSError(number, os.strerror(number), str(path))

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    monkeypatch.setattr("os.open", refuse)
    with pytest.raises(DirectoryError) as refused:
        use(data)
    assert refused.value.line.endswith("; ".join(filter(None, (f": {os.strerror(number)}", step))))


def test_a_map_larger_than_the_address_space_says_what_to_do(data: Path):
    with pytest.raises(DirectoryError, match=r"raise that limit \(`ulimit -v`\), or lower map_gib"):
        opened(data, map_bytes=1 << 50)


def test_a_secret_mounted_by_an_orchestrator_is_accepted(tmp_path: Path):
    """Kubernetes: `pepper -> ..data/pepper`, `..data -> ..2026_...`, mode 0444."""
    mounted = tmp_path / "secret"
    (mounted / "..2026_05_28").mkdir(parents=True)
    (mounted / "..2026_05_28" / "pepper").write_bytes(PEPPER)
    (mounted / "..2026_05_28" / "pepper").chmod(0o444)
    (mounted / "..data").symlink_to("..2026_05_28")
    (mounted / "pepper").symlink_to("..data/pepper")
    found = opened(tmp_path / "data", mounted / "pepper")
    found.store.close()
    assert found.pepper == PEPPER
    assert risky_modes(tmp_path / "data", mounted / "pepper") == []
