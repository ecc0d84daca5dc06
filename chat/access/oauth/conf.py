"""Settings of the authorization of programs."""

from thinkproject.kernel.conf import Setting


class OAuthSettings:
    """Read at each use. Zero switches off the limits whose text mentions it."""

    access_seconds = Setting(
        "THINK_OAUTH_ACCESS_SECONDS", 3_600, doc="How long an access token of a program works before it is refreshed."
    )
    refresh_days = Setting(
        "THINK_OAUTH_REFRESH_DAYS", 30, doc="Days without use after which a program has to be authorised again."
    )
    clients = Setting(
        "THINK_OAUTH_CLIENTS",
        1_000,
        doc="Programs that may be registered without anybody's consent at one time; 0 lets none register.",
    )
    client_hours = Setting(
        "THINK_OAUTH_CLIENT_HOURS",
        24,
        doc="Hours after which a registered program that no person authorised is removed.",
    )
    registrations_per_hour = Setting(
        "THINK_OAUTH_REGISTRATIONS_PER_HOUR", 30, doc="Programs registered from one network in an hour; 0: no limit."
    )
    grants_per_user = Setting(
        "THINK_OAUTH_GRANTS_PER_USER", 100, doc="Programs that one user may have authorised at one time; 0: no limit."
    )


oauth_settings = OAuthSettings()
