"""Settings of extensions."""

from thinkproject.kernel.conf import Setting


class ExtensionSettings:
    """Read at each use. Zero switches off the limits whose text mentions it."""

    any_host = Setting(
        "THINK_EXTENSIONS_ANY_HOST",
        False,
        doc="Whether an extension may be given the whole public network (`network: true`) instead of named hosts.",
    )
    private_networks: Setting[list[str]] = Setting(
        "THINK_EXTENSIONS_PRIVATE_NETWORKS",
        [],
        doc="Networks (CIDR) that extensions may reach although they are not public, where a host is named.",
    )
    source_bytes = Setting("THINK_EXTENSION_SOURCE_BYTES", 200_000, doc="Bytes of the source of an extension at most.")
    per_instance = Setting(
        "THINK_EXTENSIONS_PER_INSTANCE", 20, doc="Extensions of one conversation at most; 0: no limit."
    )
    per_user = Setting(
        "THINK_EXTENSIONS_PER_USER",
        100,
        doc="Extensions of one user in all conversations and for all of them; 0: no limit.",
    )
    changes_per_hour = Setting(
        "THINK_EXTENSION_CHANGES_PER_HOUR",
        60,
        doc="Versions of extensions that one user, or models for that user, may write in an hour; 0: no limit.",
    )
    versions_kept = Setting("THINK_EXTENSION_VERSIONS_KEPT", 20, doc="Versions of one extension that are kept.")
    calls_kept = Setting(
        "THINK_EXTENSION_CALLS_KEPT", 1000, doc="Recorded calls of extensions that are kept for one conversation."
    )


extension_settings = ExtensionSettings()
