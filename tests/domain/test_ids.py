from hypothesis import given
from hypothesis import strategies as st

from svc.kernel.values.ids import first_id, is_visitor_id, made_at_ms
from svc.world import RequestIds

times = st.integers(0, 2**48 - 2)


@given(times, st.binary(min_size=10, max_size=10))
def test_an_id_lies_between_the_bounds_of_its_millisecond(at_ms: int, noise: bytes):
    made = RequestIds(lambda _: noise)(at_ms).bytes
    assert first_id(at_ms) <= made < first_id(at_ms + 1)
    assert made_at_ms(made) == at_ms


def test_no_id_is_from_before_the_epoch():
    assert first_id(-5) == first_id(0) == bytes(16)


def test_a_visitor_id_has_20_ascii_letters_and_digits():
    assert is_visitor_id("0qppzPLvL54VURDkQrfS")
    for text in (
        "",
        "0qppzPLvL54VURDkQrf",
        "0qppzPLvL54VURDkQrfSx",
        "0qppzPLvL54VURDkQr-S",
        "\u0661" * 20,
        "a" * 20 + "\n",
    ):
        assert not is_visitor_id(text)
