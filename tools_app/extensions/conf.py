"""Settings of extensions."""

from thinkproject.kernel.conf import PeopleLimit, Setting


class ExtensionSettings:
    """Read at each use. Zero switches off the limits whose text mentions it."""

    any_host = Setting("THINK_EXTENSIONS_ANY_HOST", False)
    """Whether an extension may be given the whole public network (`network: true`) instead of named hosts. Set it where
    people may let data go anywhere."""

    private_networks: Setting[list[str]] = Setting("THINK_EXTENSIONS_PRIVATE_NETWORKS", [])
    """Networks (CIDR) that extensions may reach although they are not public, where a host is named. Set it for servers
    of your own."""

    per_instance = PeopleLimit("THINK_EXTENSIONS_PER_INSTANCE", 20)
    """Extensions of one conversation at most; 0: no limit. Raise it where people build much."""

    per_user = PeopleLimit("THINK_EXTENSIONS_PER_USER", 100)
    """Extensions of one user in all conversations and for all of them; 0: no limit. Raise it for people who build."""

    changes_per_hour = PeopleLimit("THINK_EXTENSION_CHANGES_PER_HOUR", 60)
    """Versions of extensions that one user, or models for that user, may write in an hour; 0: no limit. Raise it where
    people build much."""


extension_settings = ExtensionSettings()
