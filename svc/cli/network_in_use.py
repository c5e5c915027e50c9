"""The network data that a service would use with some settings, for commands that show it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from svc.cli.output import CommandError
from svc.config import Config
from svc.network_data.folder import NOTHING, FilesInUse, read_folder
from svc.network_data.lookup import BuiltInRanges, NetworkData


class NetworkInUse(NamedTuple):
    """The parts, and the look-up in them."""

    built_in: BuiltInRanges | None
    folder: Path | None
    files: FilesInUse
    data: NetworkData


def network_in_use(config: Config, directory: Path | None) -> NetworkInUse:
    """Read the network data of these settings and this data directory. Raises `CommandError` where the folder cannot be
    listed.
    """
    folder = config.network_files(directory)
    try:
        files = NOTHING if folder is None else read_folder(folder)
    except OSError as error:
        raise CommandError(f"cannot list {folder}: {error.strerror or error}") from error
    built_in = BuiltInRanges() if config.network_builtin else None
    return NetworkInUse(
        built_in, folder, files, NetworkData(built_in, files, vpn_neighbors=config.network_vpn_neighbors)
    )
