"""Which text is the identifier of one device, and which is one of many devices', a person's or a build's."""

from __future__ import annotations

import random
import uuid

import pytest

from svc.identify.report.native import usable_device_id

SHARED = [
    # Made by the system of every device of some makers, or by nobody.
    "9774d56d682e549c", "9774D56D682E549C", "0000000000000000", "00000000-0000-0000-0000-000000000000",
    "00000000-0000-0000-0000-000000000001", "ffffffffffffffff", "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
    "8888888888888888", "0000000000000001", "1000000000000000",
    # Repetitions and counting.
    "abababababababab", "deadbeefdeadbeef", "1234567812345678", "0123456789abcdef", "0123456789ABCDEF",
    "1234567890123456", "fedcba9876543210", "12345678-1234-1234-1234-123456789012",
    "12345678-1234-1234-1234-123456789abc", "abcdefghijklmnop", "-" * 20, "1-2-3-4-5-6-7-8-9",
    # Examples from documentation.
    "E621E1F8-C36C-495A-93FC-0C247A3E6E5F", "123e4567-e89b-12d3-a456-426614174000",
    "550e8400-e29b-41d4-a716-446655440000",
    # Words in the place of an identifier.
    "unknown-android-id", "undefinedundefined", "NOT-AVAILABLE-2024", "android_id_missing", "[object Object]1",
    "iPhone-15-Pro-Max", "emulator-5554-abcd",
    # The name of a build, which `AndroidDeviceInfo.id` of Flutter's device_info_plus is.
    "UP1A.231105.003.A1", "AP4A.250105.002.B1", "UP1A.231005.007.S918BXXU3BWK5",
    "google/shiba/shiba:14/UP1A.231105.003", "lineage davinci 13 TQ3A",
]  # fmt: skip


@pytest.mark.parametrize("device_id", SHARED)
def test_what_many_devices_have_is_nobodys_identifier(device_id: str):
    assert usable_device_id(device_id) is None
    assert usable_device_id(device_id, "a1b2c3d4e5f60718") == "a1b2c3d4e5f60718"


@pytest.mark.parametrize(
    "device_id", [None, 1234567890123456, True, [], {}, "", "a1b2c3d4e5f6071", "a1" * 33, "\ud800" * 16]
)
def test_another_type_or_length_is_not_usable(device_id: object):
    assert usable_device_id(device_id) is None


@pytest.mark.parametrize(
    "device_id",
    [
        "a1b2c3d4e5f60718", "0011223344556677", "6F1C2B9A-3D4E-4F50-8A6B-7C8D9E0F1A2B", "00f1c2b9a3d4e500",
        "9774d56d682e549d", "xK9vQ2mP7sLw4RtZ8nBc", "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12aabbccddeeff001122334455",
    ],
)  # fmt: skip
def test_an_identifier_is_kept_as_it_was_sent(device_id: str):
    assert usable_device_id(device_id) == device_id


@pytest.mark.slow(0.2)
def test_random_identifiers_of_all_kinds_are_usable():
    """Of 16 hexadecimal digits, as Android's are, about one in two million is refused."""
    dice = random.Random(1)
    for _ in range(4_000):
        assert usable_device_id(f"{dice.getrandbits(64):016x}")
        assert usable_device_id(str(uuid.UUID(int=dice.getrandbits(128), version=4)).upper())
