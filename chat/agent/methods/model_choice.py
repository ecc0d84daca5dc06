"""The methods of `Think` and `AgentHandle` about the model that people chose for a conversation."""

from chat.agent.ports import InstancePort
from chat.core.model.chosen_model import NOTHING, ChosenModel


class ModelMethods:
    """Reads and sets the choice of a conversation. See `docs/howto/choose-models.md`."""

    instance: InstancePort

    async def get_model_choice(self) -> ChosenModel:
        """Read the conversation's choice as it is stored now; empty fields are the agent's own."""
        return await self.instance.model_choice.load()

    async def choose_model(self, choice: ChosenModel | None) -> None:
        """Set the conversation's choice as a whole, from its next turn on; `None` goes back to the agent's own.

        The same rules hold as for people. Durability: stored when this returns, and open pages learn of it. Errors:
        `ModelChoiceInvalid`, and then nothing has changed.
        """
        await self.instance.model_choice.save(choice or NOTHING)
