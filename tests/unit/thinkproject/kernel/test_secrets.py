"""Secrets that are stored: read with the key, and not without it."""

import pytest
from django.test import override_settings

from thinkproject.kernel.secrets import SecretUnreadable, decrypt, encrypt

CANARY = "canary-5bd1"


def test_what_was_encrypted_is_read_again_and_is_not_in_the_token() -> None:
    token = encrypt(CANARY)
    assert CANARY not in token
    assert encrypt(CANARY) != token
    assert decrypt(token) == CANARY


def test_a_new_key_reads_what_the_former_one_wrote_until_that_is_taken_away() -> None:
    with override_settings(SECRET_KEY="old"):
        token = encrypt(CANARY)
    with override_settings(SECRET_KEY="new", SECRET_KEY_FALLBACKS=["old"]):
        assert decrypt(token) == CANARY
        newer = encrypt(CANARY)
    with override_settings(SECRET_KEY="new"):
        assert decrypt(newer) == CANARY
        with pytest.raises(SecretUnreadable):
            decrypt(token)


def test_keys_of_their_own_stand_in_the_place_of_the_sites_key() -> None:
    with override_settings(THINK_ENCRYPTION_KEYS=["first", "second"]):
        token = encrypt(CANARY)
    with override_settings(THINK_ENCRYPTION_KEYS=["second", "first"], SECRET_KEY="another"):
        assert decrypt(token) == CANARY
    with pytest.raises(SecretUnreadable):
        decrypt(token)


@pytest.mark.parametrize("damaged", ["", "nonsense", "gAAAA"])
def test_a_damaged_token_is_refused(damaged: str) -> None:
    with pytest.raises(SecretUnreadable):
        decrypt(damaged)
