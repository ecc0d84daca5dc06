"""How many of many tools are found by the words that models ask with: other forms of those that tools have."""

import pytest

from tools_app.core.deferral import FEW
from tools_app.core.ranking import ranked

SERVICES = {
    "github": ("issue", "branch", "commit", "release", "review", "repository"),
    "jira": ("ticket", "sprint", "board", "comment", "worklog", "project"),
    "gmail": ("mail", "draft", "label", "attachment", "thread", "filter"),
    "calendar": ("event", "reminder", "invitation", "room", "schedule", "attendee"),
    "drive": ("file", "folder", "permission", "shortcut", "revision", "share"),
    "slack": ("message", "channel", "reaction", "user", "status", "pin"),
    "stripe": ("invoice", "refund", "customer", "subscription", "payment", "coupon"),
    "crm": ("contact", "deal", "company", "note", "task", "pipeline"),
    "weather": ("forecast", "alert", "station", "observation", "radar", "warning"),
    "shop": ("order", "product", "cart", "parcel", "voucher", "supplier"),
}
VERBS = {
    "create": ("Make a new", "creating {things} in {service}"),
    "list": ("Show all", "{service} {things} list"),
    "update": ("Change a", "updated {things} {service}"),
    "delete": ("Remove a", "remove {things} from {service}"),
    "search": ("Find a", "searching {service} for {things}"),
}


def plural(word: str) -> str:
    if word.endswith("y"):
        return f"{word[:-1]}ies"
    return word + ("es" if word.endswith(("s", "ch")) else "s")


@pytest.mark.parametrize(("services", "count"), [(1, 30), (10, 300)])
def test_a_tool_is_among_the_first_whatever_the_form_of_its_words(services: int, count: int) -> None:
    tools, asked = [], []
    for service, things in list(SERVICES.items())[:services]:
        for thing in things:
            for verb, (says, asks) in VERBS.items():
                tools.append((f"{service}_{verb}_{thing}", f"{says} {thing} in {service.title()}."))
                asked.append(asks.format(things=plural(thing), service=service))
    assert len(tools) == count
    missed = [query for place, query in enumerate(asked) if place not in ranked(query, tools)[:FEW]]
    assert missed == []
