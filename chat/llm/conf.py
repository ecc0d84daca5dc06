"""Settings of models. Values come from Django's settings; the environment is read there, not here."""

from typing import ClassVar

from thinkproject.kernel.conf import Setting
from thinkproject.kernel.jsonvalue import JSONObject


class LLMSettings:
    """Settings of models, read on use."""

    model = Setting(
        "THINK_MODEL",
        "",
        doc="Model that agents get as `default`, as `provider/model`; of several, comma-separated, the next answers "
        "where one fails.",
    )
    choice_file = Setting("THINK_MODEL_CHOICE_FILE", "", doc="JSON file with what discovery chose at start.")
    providers: ClassVar[Setting[dict[str, JSONObject]]] = Setting(
        "THINK_PROVIDERS", {}, doc="More providers by name: `{name: {base_url, api_key, api, can_call_tools, ...}}`."
    )
    model_limits: ClassVar[Setting[dict[str, JSONObject]]] = Setting(
        "THINK_MODEL_LIMITS",
        {},
        doc="Tokens that models take, by the beginning of `provider/model`: `{name: {context, output, input}}`.",
    )
    prices: ClassVar[Setting[dict[str, JSONObject]]] = Setting(
        "THINK_PRICES",
        {},
        doc="Prices by model, per million tokens: `{name: {input, output, cache_read, cache_write, above_200k}}`.",
    )
    models = Setting[tuple[str, ...] | list[str]](
        "THINK_MODELS",
        (),
        doc="Models that people may choose for a conversation, as `provider/model`, comma-separated; `default` stands "
        "for the site's own. Empty: nothing can be chosen, and each agent's own model answers.",
    )
    model_facts: ClassVar[Setting[dict[str, JSONObject]]] = Setting(
        "THINK_MODEL_FACTS",
        {},
        doc="What people can choose of a model, by the beginning of `provider/model`: "
        "`{name: {title, reasoning_efforts, parameters, inputs}}`.",
    )
    title_model = Setting(
        "THINK_TITLE_MODEL",
        "",
        doc="Model that writes titles, as `provider/model`; empty: the agent's own; `none`: no titles are written.",
    )
    summary_model = Setting(
        "THINK_SUMMARY_MODEL",
        "none",
        doc="Model that keeps a short summary of each conversation for people, as `provider/model`; empty: the agent's "
        "own; `none`: only when a person asks for one.",
    )
    openai_api_key = Setting("OPENAI_API_KEY", "", doc="Key for OpenAI, or for the server at OPENAI_BASE_URL.")
    openai_base_url = Setting("OPENAI_BASE_URL", "", doc="Address of a server that speaks Chat Completions.")
    retry_attempts = Setting("THINK_MODEL_ATTEMPTS", 3, doc="Attempts at a model call of which nothing was shown yet.")
    rest_seconds = Setting(
        "THINK_MODEL_REST_SECONDS",
        30.0,
        doc="How long a model of a list that failed is not asked first, in the same process; 0: it always is.",
    )
    stall_seconds = Setting("THINK_MODEL_STALL_SECONDS", 60.0, doc="Silence within an answer that counts as a stall.")
    first_token_seconds = Setting(
        "THINK_MODEL_FIRST_TOKEN_SECONDS", 300.0, doc="Wait for an answer's first event that counts as a stall."
    )


llm_settings = LLMSettings()
