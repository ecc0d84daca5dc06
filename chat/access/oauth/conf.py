"""Settings of the authorization of programs."""

from thinkproject.kernel.conf import PeopleLimit


class OAuthSettings:
    """Read at each use. Zero switches off the limits whose text mentions it."""

    access_seconds = PeopleLimit("THINK_OAUTH_ACCESS_SECONDS", 3_600)
    """How long an access token of a program works before it is refreshed. Lower it where tokens may leak."""

    refresh_days = PeopleLimit("THINK_OAUTH_REFRESH_DAYS", 30)
    """Days without use after which a program has to be authorised again. Raise it for programs that are seldom used."""

    clients = PeopleLimit("THINK_OAUTH_CLIENTS", 1_000)
    """Programs that may be registered without anybody's consent at one time; 0 lets none register. Set it to 0 where no
    program shall sign in."""

    registrations_per_hour = PeopleLimit("THINK_OAUTH_REGISTRATIONS_PER_HOUR", 30)
    """Programs registered from one network in an hour; 0: no limit. Raise it where many share an address."""

    grants_per_user = PeopleLimit("THINK_OAUTH_GRANTS_PER_USER", 100)
    """Programs that one user may have authorised at one time; 0: no limit. Lower it where strangers sign up."""


oauth_settings = OAuthSettings()
