"""Settings of developers' code."""

from thinkproject.kernel.conf import Setting


class UserCodeSettings:
    """Read at each use."""

    plugins: Setting[list[str]] = Setting("THINK_PLUGINS", [])
    """Plugins (`chat.think.Plugin`) whose hooks run before those of every agent, in this order: dotted paths of classes
    or objects. Set it for what holds for a whole site, as an audit or a filter."""


user_code_settings = UserCodeSettings()
