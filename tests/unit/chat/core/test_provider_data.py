"""Which data and which ids a model gets of a history."""

import re

from hypothesis import given
from hypothesis import strategies as st

from chat.core.model.language_model import AssistantMessage, ToolCallContent
from chat.core.model.provider_data import ProviderData, returned, wire_ids

OWN = "moonshot/kimi"


def call(call_id: str, model: str = "") -> AssistantMessage:
    metadata = ProviderData(model=model).metadata() if model else {}
    return AssistantMessage(
        content=(ToolCallContent(call_id=call_id, tool_name="lookup", input={}, provider_metadata=metadata),)
    )


def test_data_go_to_the_model_that_sent_them_alone() -> None:
    metadata = ProviderData(model=OWN, fields={"call": {"x": 1}}).metadata()
    assert returned(metadata, OWN) == {"call": {"x": 1}}
    assert returned(metadata, "moonshot/other") is None
    assert returned({"thinkProvider": "odd"}, OWN) is None
    assert returned(None, OWN) is None


def test_odd_ids_go_back_as_they_came_and_to_others_as_nine_letters() -> None:
    history = (call("functions.lookup:0", OWN), call("x" * 80, OWN), call("call_1", OWN))
    assert wire_ids(history, OWN, is_strict=False) == {}
    others = wire_ids(history, "openai/gpt", is_strict=False)
    assert set(others) == {"functions.lookup:0", "x" * 80}
    assert all(re.fullmatch("[A-Za-z0-9]{9}", sent) for sent in others.values())


def test_a_strict_server_gets_nine_letters_for_everything_else() -> None:
    sent = wire_ids((call("call_1"), call("D681PevKs")), "mistral/large", is_strict=True)
    assert set(sent) == {"call_1"}


@given(st.lists(st.text(min_size=1, max_size=90), min_size=1, max_size=20, unique=True), st.booleans())
def test_ids_are_the_same_from_request_to_request_and_stay_different(ids: list[str], is_strict: bool) -> None:
    history = tuple(map(call, ids))
    sent = wire_ids(history, OWN, is_strict=is_strict)
    for length in range(len(history)):
        earlier = wire_ids(history[:length], OWN, is_strict=is_strict)
        assert earlier == {call_id: sent[call_id] for call_id in ids[:length] if call_id in sent}
    on_the_wire = [sent.get(call_id, call_id) for call_id in ids]
    assert len(set(on_the_wire)) == len(ids)
    assert all(
        re.fullmatch("[A-Za-z0-9]{9}" if is_strict else "[A-Za-z0-9_-]{1,64}", call_id) for call_id in on_the_wire
    )
