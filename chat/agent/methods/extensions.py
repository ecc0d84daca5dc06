"""Extensions of an agent: those that its class brings, and loading, changing and unloading others.

    class Assistant(Think):
        extensions = True

        def get_extensions(self):
            return [{"manifest": {"name": "math", "version": "1.0.0"}, "source": MATH}]

How to write one: `docs/howto/extensions.md`.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from chat.agent.ports import InstancePort
from thinkproject.kernel.jsonvalue import JSONObject


class ExtensionMethods:
    """Extensions of a conversation. `Think` and `AgentHandle` share these methods.

    Shape of an extension: `{name, version, description, prefix, scope, tools, hooks, contextLabels, permissions}`, the
    tools as models call them.
    """

    instance: InstancePort

    async def load_extension(self, manifest: Mapping[str, Any], source: str) -> JSONObject:
        """Load an extension for this conversation: its tools are there from the next turn on, also after a restart.

        The permissions of the manifest are granted with it. Durability: stored when it returns. Errors:
        `ExtensionExists` for a name that is loaded already, `ExtensionInvalid`, `ExtensionLimit`, `SandboxUnavailable`.
        """
        return await self.instance.extensions.load(manifest, source)

    async def unload_extension(self, name: str) -> bool:
        """Unload an extension of this conversation, with its context blocks; `False` where there is none.

        Calls that still run have no result. Those of the class, the user and the site stay.
        """
        return await self.instance.extensions.unload(name)

    async def list_extensions(self) -> list[JSONObject]:
        """List the extensions of this conversation in load order: of the class, the site, the user, its own."""
        return await self.instance.extensions.list_all()

    async def update_extension(
        self, name: str, *, source: str | None = None, manifest: Mapping[str, Any] | None = None
    ) -> JSONObject:
        """Write a new version of an extension of this conversation. It runs from the next call on.

        A new source alone keeps what is granted; a manifest has its permissions granted. Durability and errors as
        above, and `ExtensionNotFound`.
        """
        return await self.instance.extensions.update(name, source=source, manifest=manifest)


class ExtensionDeclarations(ExtensionMethods):
    """The declarations of a class about extensions."""

    extensions: ClassVar[bool] = False
    """Whether the model gets `load_extension`, each call of which a person has to approve, and `list_extensions`."""

    def get_extensions(self) -> Any:
        """Give the extensions that every instance has: `{"manifest": …, "source": …}` each. Runs once an attempt.

        They load first, with the permissions that their manifests name. One that cannot be loaded is left out and
        logged. Nothing of them is stored.
        """
        return ()
