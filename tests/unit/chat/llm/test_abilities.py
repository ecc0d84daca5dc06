"""What a model takes: declarations before findings, findings before lists and reports, refusals before all."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from chat.core.model.abilities import Ability
from chat.llm.abilities import calls_tools, reads, sends_tools
from chat.llm.endpoint import Endpoint
from chat.llm.model_memory import (
    KEEP_PROBED_SECONDS,
    KEEP_SECONDS,
    NOTHING,
    RECALL_SECONDS,
    Learned,
    ModelMemory,
    model_memory,
)
from chat.llm.providers import Credentials, route
from chat.llm.registry import facts_of, resolve_model
from thinkproject.kernel.cache import shared_cache

ADDRESS = "http://127.0.0.1:9/v1"
FOUND = Learned(abilities={Ability.IMAGES: True, Ability.PDF: True, Ability.TOOLS: False, Ability.REASONING: True})


@pytest.mark.parametrize("found", [None, True, False])
@pytest.mark.parametrize("declared", [None, True, False])
def test_declared_goes_before_found(declared: bool | None, found: bool | None) -> None:
    endpoint = Endpoint(
        provider="a",
        base_url=ADDRESS,
        accepts_images=declared,
        accepts_documents=declared,
        can_call_tools=declared,
    )
    names = (Ability.IMAGES, Ability.PDF, Ability.TOOLS)
    known = Learned(abilities={} if found is None else dict.fromkeys(names, found))
    expected = found if declared is None else declared
    assert (reads("image", endpoint, known), reads("document", endpoint, known)) == (expected, expected)
    assert calls_tools(endpoint, known) == expected
    assert sends_tools(endpoint, known) == (expected is not False)


@pytest.mark.parametrize(
    ("listed", "reported", "found", "read"),
    [
        (None, None, None, None),
        (None, ("image",), None, True),
        (None, (), None, False),
        ((), ("image",), None, False),
        (("image",), None, None, None),
        (("image",), (), None, False),
        ((), (), True, True),
        (("image",), ("image",), False, False),
    ],
)
def test_found_goes_before_list_and_report(
    listed: tuple[str, ...] | None, reported: tuple[str, ...] | None, found: bool | None, read: bool | None
) -> None:
    endpoint = Endpoint(provider="a", base_url=ADDRESS, listed_inputs=listed)
    known = Learned(inputs=reported, abilities={} if found is None else {Ability.IMAGES: found})
    assert reads("image", endpoint, known) is read


def test_refused_goes_before_declared() -> None:
    endpoint = Endpoint(provider="a", base_url=ADDRESS, accepts_images=True)
    assert reads("image", endpoint, Learned(refused_inputs=("image",))) is False


def test_reported_tools_are_shown_and_decide_nothing() -> None:
    endpoint = Endpoint(provider="a", base_url=ADDRESS)
    assert calls_tools(endpoint, Learned(calls_tools=False)) is False
    assert sends_tools(endpoint, Learned(calls_tools=False))


def test_undeclared_is_unknown() -> None:
    endpoint = route("box", Credentials(), {"box": {"base_url": ADDRESS}}).endpoint
    assert (endpoint.accepts_images, endpoint.accepts_documents, endpoint.can_call_tools) == (None, None, None)
    declared = {"base_url": ADDRESS, "accepts_images": False, "accepts_documents": True, "can_call_tools": 0}
    endpoint = route("box", Credentials(), {"box": declared}).endpoint
    assert (endpoint.accepts_images, endpoint.accepts_documents, endpoint.can_call_tools) == (False, True, False)


async def test_findings_are_shown_and_used(settings: Any) -> None:
    settings.THINK_PROVIDERS = {"box": {"base_url": ADDRESS}, "shut": {"base_url": ADDRESS, "accepts_documents": False}}
    settings.THINK_MODEL_FACTS = {"box/blind": {"inputs": []}}
    assert (facts_of("box/m").inputs, facts_of("box/m").calls_tools, facts_of("box/m").reasons) == (None, None, None)
    for name in ("m", "blind"):
        await model_memory.learn(ADDRESS, name, lambda _known: FOUND)
    model = resolve_model("box/m")
    assert (model.accepts_images, model.accepts_documents) == (True, True)
    facts = facts_of("box/m")
    assert (facts.inputs, facts.calls_tools, facts.reasons) == (("image", "document"), False, True)
    assert (resolve_model("shut/m").accepts_documents, facts_of("shut/m").inputs) == (False, ("image",))
    assert (resolve_model("box/blind").accepts_images, facts_of("box/blind").inputs) == (False, ())


async def test_another_process_learns_of_findings(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "found"}}
    ours, others = ModelMemory(), ModelMemory()
    assert await ours.recall(ADDRESS, "shared") == NOTHING
    await others.learn(ADDRESS, "shared", lambda _known: FOUND)
    assert await ours.recall(ADDRESS, "shared") == NOTHING
    monkeypatch.setattr("chat.llm.model_memory.RECALL_SECONDS", 0.0)
    assert RECALL_SECONDS > 0
    assert await ours.recall(ADDRESS, "shared") == FOUND


@pytest.mark.parametrize(("known", "seconds"), [(NOTHING, KEEP_SECONDS), (FOUND, KEEP_PROBED_SECONDS)])
async def test_findings_are_kept_longer_than_lessons(
    known: Learned, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[tuple[Any, Any]] = []
    monkeypatch.setattr(type(shared_cache()), "set", lambda _self, _key, value, lasts: kept.append((value, lasts)))
    learned = replace(known, refused_inputs=("image",))
    await ModelMemory().learn(ADDRESS, "kept", lambda _known: learned)
    assert kept == [(asdict(learned), seconds)]
