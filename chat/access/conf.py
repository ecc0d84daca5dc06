"""Settings of sign-in and of pages of other origins."""

from thinkproject.kernel.conf import PeopleLimit, Setting


class AccessSettings:
    """Read at each use. Zero switches off the limits whose text mentions it."""

    allowed_origins = Setting[tuple[str, ...] | list[str]]("THINK_ALLOWED_ORIGINS", ())
    """Origins (`https://app.example.com`) of other pages that may use sockets and chats with a cookie. Set it for a
    page of your own elsewhere."""

    sign_in_tries = PeopleLimit("THINK_SIGN_IN_TRIES", 5)
    """Failed attempts to sign in to one account from one address; 0: no limit. Set it to 0 where another server limits
    them."""

    sign_in_tries_per_address = PeopleLimit("THINK_SIGN_IN_TRIES_PER_ADDRESS", 50)
    """Failed attempts to sign in from one address, to whatever account; 0: no limit. Raise it where very many people
    share an address."""

    sign_in_lock_seconds = PeopleLimit("THINK_SIGN_IN_LOCK_SECONDS", 900)
    """How long a failed attempt counts, and so how long a lock lasts after the last one that was made. Raise it where
    accounts are attacked."""

    link_minutes = PeopleLimit("THINK_SIGN_IN_LINK_MINUTES", 15)
    """Minutes for which a sign-in link works. Raise it where links travel by mail."""


access_settings = AccessSettings()
