"""The data directory: what lies where in it, how it is made, and how it is opened.

DATA/store/    the LMDB environment
DATA/pepper    32 random bytes, mode 0600: without it no key can be checked and none forged
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from svc.store.snapshot import Transaction
from svc.store.store import DEFAULT_MAP_BYTES, Store
from svc.store.tables import META
from svc.world import RunSync

PEPPER_BYTES = 32


class Unusable(Exception):  # noqa: N818  tells the state of a directory
    """The directory cannot be used; the message says what to do."""


class Opened(NamedTuple):
    store: Store
    pepper: bytes


def open_directory(
    directory: Path,
    run_sync: RunSync,
    entropy: Callable[[int], bytes],
    *,
    pepper_file: Path | None = None,
    map_bytes: int = DEFAULT_MAP_BYTES,
    durable: bool = True,
    create: bool = True,
) -> Opened:
    """Open a data directory, made first when it is not there yet and `create` says so.

    `durable=False` leaves out the fsync of each commit: for stores that are thrown away. Raises `Unusable`, and
    `migrations.NewerStore`.
    """
    store_directory = directory / "store"
    exists = (store_directory / "data.mdb").exists()
    if not exists and not create:
        raise Unusable(f"{directory} holds no data of this service; `svc org create` makes it, or name another --data")
    pepper_path = pepper_file or directory / "pepper"
    if exists and not pepper_path.exists():
        raise Unusable(
            f"the pepper {pepper_path} is missing, so no key could be checked: put it back, or name it with "
            "SVC_PEPPER_FILE"
        )
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        pepper = _read_or_make(pepper_path, entropy)
        store = Store.open(store_directory, run_sync, map_bytes=map_bytes, durable=durable)
    except OSError as error:
        raise Unusable(f"cannot use {error.filename or directory}: {error.strerror}") from error
    outcome = store.write_now([lambda transaction: _same_pepper(transaction, pepper)])[0]
    if outcome is not True:
        store.close()
        raise Unusable(f"{pepper_path} is not the pepper that this store's keys were made with")
    return Opened(store, pepper)


def _read_or_make(path: Path, entropy: Callable[[int], bytes]) -> bytes:
    if not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(entropy(PEPPER_BYTES))
            file.flush()
            os.fsync(file.fileno())
    pepper = path.read_bytes()
    if len(pepper) < PEPPER_BYTES:
        raise Unusable(f"{path} is shorter than {PEPPER_BYTES} bytes: it is not a pepper of this service")
    return pepper


def _same_pepper(transaction: Transaction, pepper: bytes) -> bool:
    """The store keeps a few bits of the pepper's digest, so that a wrong pepper is noticed before it refuses all."""
    mark = int.from_bytes(hmac.digest(pepper, b"svc store mark 1", "sha256")[:4])
    known = transaction.get(META, "pepper_mark")
    if known is None:
        transaction.put(META, ("pepper_mark",), mark)
    return known in (None, mark)
