"""Settings of models. Values come from Django's settings; the environment is read there, not here."""

from typing import ClassVar

from django.conf import settings

from thinkproject.kernel.conf import MachineLimit, Setting
from thinkproject.kernel.jsonvalue import JSONObject


class LLMSettings:
    """Settings of models, read on use."""

    model = Setting("THINK_MODEL", "")
    """Model that `default` stands for, as `provider/model`. Set it to choose one."""

    providers: ClassVar[Setting[dict[str, JSONObject]]] = Setting("THINK_PROVIDERS", {})
    """More providers by name: `{name: {base_url, api_key, api, can_call_tools, ...}}`; with `own_keys` people may use
    keys of their own, for `openai` too: `{openai: {own_keys: true}}`. Set it for your own servers."""

    model_limits: ClassVar[Setting[dict[str, JSONObject]]] = Setting("THINK_MODEL_LIMITS", {})
    """Tokens that models take, by the beginning of `provider/model`: `{name: {context, output, input}}`. Set it for
    models that are not known."""

    prices: ClassVar[Setting[dict[str, JSONObject]]] = Setting("THINK_PRICES", {})
    """Prices by model, per million tokens: `{name: {input, output, cache_read, cache_write, above_200k}}`. Set it where
    you pay other prices than the published ones."""

    models = Setting[tuple[str, ...] | list[str]]("THINK_MODELS", ())
    """Models that people may choose for a conversation, as `provider/model`, comma-separated; `default` stands for the
    site's own. Empty: nothing can be chosen, and each agent's own model answers. Set it to give one."""

    model_facts: ClassVar[Setting[dict[str, JSONObject]]] = Setting("THINK_MODEL_FACTS", {})
    """What people can choose of a model, by the beginning of `provider/model`: `{name: {title, reasoning_efforts,
    parameters, inputs}}`. Set it for models that are not known."""

    title_model = Setting("THINK_TITLE_MODEL", "")
    """Model that writes titles, as `provider/model`; empty: the agent's own; `none`: no titles are written. Set it to a
    cheap model."""

    summary_model = Setting("THINK_SUMMARY_MODEL", "none")
    """Model that keeps a short summary of each conversation for people, as `provider/model`; empty: the agent's own;
    `none`: only when a person asks for one. Set it where long lists of conversations are looked through."""

    openai_api_key = Setting("OPENAI_API_KEY", "")
    """Key for the model server. Set it for a server that asks."""

    openai_base_url = Setting("OPENAI_BASE_URL", "")
    """Address of a model server. Set it for one of your own."""

    retry_attempts = MachineLimit("THINK_MODEL_ATTEMPTS", 3)
    """Attempts at a model call of which nothing was shown yet. Lower it where another model stands by."""

    stall_seconds = MachineLimit("THINK_MODEL_STALL_SECONDS", 60.0)
    """Silence within an answer that counts as a stall. Raise it for models on slow machines."""

    first_token_seconds = MachineLimit("THINK_MODEL_FIRST_TOKEN_SECONDS", 300.0)
    """Wait for an answer's first event that counts as a stall. Raise it for models on slow machines."""

    @property
    def choice_file(self) -> str:
        """Path of the JSON file with what discovery chose at start; empty when there is none."""
        path: str = getattr(settings, "THINK_MODEL_CHOICE_FILE", "")
        return path


llm_settings = LLMSettings()
