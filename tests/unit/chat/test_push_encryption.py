"""Pushes as push services and browsers read them: the example of RFC 8291, and what is refused."""

import pytest
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from chat.push.encryption import MAX_TEXT_BYTES, encrypt, from_base64, to_base64
from tests.push_service import PushedBrowser

SENDER = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
BROWSER = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl"
    "7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def test_the_example_of_the_standard_is_made_byte_for_byte() -> None:
    """Appendix A of RFC 8291."""
    sender = ec.derive_private_key(int.from_bytes(from_base64(SENDER), "big"), ec.SECP256R1())
    body = encrypt(
        b"When I grow up, I want to be a watermelon",
        to=from_base64(BROWSER),
        auth=from_base64("BTBZMqHH6r4Tts7J_aSIgg"),
        salt=from_base64("DGv6ra1nlYgDCS1FRnbzlw"),
        sender=sender,
    )
    assert to_base64(body) == BODY


@given(text=st.binary(max_size=MAX_TEXT_BYTES), salt=st.binary(min_size=16, max_size=16))
def test_only_its_browser_opens_a_push(text: bytes, salt: bytes) -> None:
    browser, another = PushedBrowser(endpoint="a"), PushedBrowser(endpoint="b")
    body = encrypt(text, to=browser.public, auth=browser.auth, salt=salt)
    assert browser.opened(body) == text
    with pytest.raises(InvalidTag):
        another.opened(body)


def test_long_texts_and_odd_keys_are_refused() -> None:
    browser = PushedBrowser(endpoint="a")
    with pytest.raises(ValueError, match="too long"):
        encrypt(b"x" * (MAX_TEXT_BYTES + 1), to=browser.public, auth=browser.auth, salt=bytes(16))
    with pytest.raises(ValueError, match=r"."):
        encrypt(b"x", to=b"\x04" + bytes(64), auth=browser.auth, salt=bytes(16))
    with pytest.raises(ValueError, match=r"."):
        from_base64("a+b/")
