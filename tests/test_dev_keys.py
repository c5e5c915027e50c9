"""The keys of `svc dev` from start to start."""

from __future__ import annotations

import json
from collections.abc import Generator
from functools import partial
from pathlib import Path

import pytest

from svc.cli.develop.dev import development_keys
from svc.command.data_directory import opened_directory
from svc.command.local_service import KEYS_FILE, DevelopmentKeys, read_keys
from svc.command.output import CommandError
from svc.features.keys.command import revoke_key
from svc.features.organizations.command import create_organization
from svc.kernel.access.credentials import ApiKey, digest
from svc.kernel.config import Config
from svc.kernel.tenants import queries as lookups
from svc.world import World

URL = "http://127.0.0.1:8081"
ORIGIN = "http://192.168.1.20:3000"


class Directory:
    """An open data directory with an organization."""

    def __init__(self, path: Path, found, world: World) -> None:
        self.path, self.found, self.world = path, found, world
        self.organization = create_organization(found, world, "development", credit=0)
        self.number = self.organization.number

    def start(self, *origins: str, region: str = "us", url: str = URL) -> DevelopmentKeys:
        return development_keys(self.path, self.found, self.world, self.organization, region, url, origins)

    def issued(self) -> list[ApiKey]:
        with self.found.store.read() as snapshot:
            return lookups.keys_of(snapshot, self.number)

    def key(self, secret: str) -> ApiKey:
        with self.found.store.read() as snapshot:
            known = lookups.find_key(snapshot, digest(self.found.pepper, secret))
        assert known is not None
        return known


@pytest.fixture
def directory(tmp_path: Path) -> Generator[Directory]:
    world = World.real()
    with opened_directory(tmp_path, Config(map_gib=0.0625), world) as found:
        yield Directory(tmp_path, found, world)


def test_keys_persist_between_starts_in_a_file_readable_by_its_owner_only(directory: Directory):
    first = directory.start()
    file = directory.path / KEYS_FILE
    assert json.loads(file.read_text()) == {
        "url": URL,
        "organization_id": directory.organization.id,
        "public": first.public,
        "secret": first.secret,
        "management": first.management,
    }
    assert file.stat().st_mode & 0o777 == 0o600
    assert directory.start() == first
    # By the time of their creation: those of one millisecond come in any order.
    assert sorted((key.kind, key.status) for key in directory.issued()) == [
        ("management", "active"),
        ("public", "active"),
        ("secret", "active"),
    ]


def test_programs_find_a_service_that_has_another_port_now(directory: Directory):
    first = directory.start()
    moved = directory.start(url="http://127.0.0.1:9000")
    assert (moved.url, moved.public) == ("http://127.0.0.1:9000", first.public)
    assert read_keys(directory.path) == moved


def test_a_revoked_key_is_created_again_and_the_others_stay(directory: Directory):
    first = directory.start()
    revoke_key(directory.found, directory.world, directory.key(first.public).id)
    second = directory.start()
    assert second.public != first.public
    assert (second.secret, second.management) == (first.secret, first.management)
    assert directory.key(second.public).status == "active"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"public": 1}', "{}", '{"secret": "svc_sk_us_development_x"}'])
def test_an_unusable_file_is_replaced_with_every_key_in_it(directory: Directory, content: str):
    first = directory.start()
    (directory.path / KEYS_FILE).write_text(content)
    second = directory.start()
    assert {first.public, first.secret, first.management}.isdisjoint({second.public, second.secret, second.management})
    assert directory.start() == second
    assert [key.status for key in directory.issued()].count("active") == 3, "keys whose secret is lost are revoked"


def test_keys_of_another_region_are_not_used(directory: Directory):
    first = directory.start()
    assert directory.start(region="eu").secret.startswith("svc_sk_eu_development_")
    assert directory.key(first.secret).status == "revoked"


def test_origins_are_added_to_the_public_key_and_kept(directory: Directory):
    origins = partial(lambda started: directory.key(started.public).allowed_origins)
    assert origins(directory.start()) == ()
    assert origins(directory.start(ORIGIN)) == (ORIGIN,)
    assert origins(directory.start("https://*.ngrok.app", ORIGIN)) == (ORIGIN, "https://*.ngrok.app")
    assert origins(directory.start()) == (ORIGIN, "https://*.ngrok.app")


def test_an_invalid_origin_is_rejected_before_any_change(directory: Directory):
    with pytest.raises(CommandError, match="is not an origin such as"):
        directory.start("192.168.1.20:3000")
    assert directory.issued() == []
    assert not (directory.path / KEYS_FILE).exists()
