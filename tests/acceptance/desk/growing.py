"""An agent that extends itself."""

from chat.think import Think


class Tinkerer(Think):
    """Loads the extensions that it writes."""

    extensions = True

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"
