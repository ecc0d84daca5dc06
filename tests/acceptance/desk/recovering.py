"""Agents for what happens when a worker is lost or a model fails."""

from chat.think import Think


class Hesitant(Think):
    """Waits for a person once its worker was lost."""

    chat_recovery = "paused"

    def get_model(self) -> str:
        """Answer with the scripted provider."""
        return "default"


class Backed(Think):
    """Has a second model behind the first."""

    def get_model(self) -> list[str]:
        """Name two models of the scripted provider."""
        return ["openai/gpt-5", "openai/gpt-4o"]
