"""`prune_conversations`: delete whole conversations by a rule; `--dry-run` lists them."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from tqdm import tqdm

from chat.conversations.pruning import MAX_COUNTED, PlannedConversation, PruneRule, plan_pruning, prune_by_rule
from chat.errors import InputInvalid


class Command(BaseCommand):
    help = (
        "Remove whole conversations that fulfil all that is given: archived ones, or all with --all. What is pinned, "
        "what has a turn under way, and messages that a fork shares stay."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--days", type=int, help="Not active for so many days.")
        parser.add_argument("--keep", type=int, help="Not among the so many newest of their owner.")
        parser.add_argument("--owner", help="Of this person, by user name.")
        parser.add_argument("--all", action="store_true", help="Also those that are not archived.")
        parser.add_argument("--dry-run", action="store_true", help="Say what would go; change nothing.")

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            rule = PruneRule(
                days=options["days"],
                keep=options["keep"],
                owner_id=_owner_id(options["owner"]),
                archived_only=not options["all"],
            )
        except InputInvalid as error:
            raise CommandError(error.message) from error
        now = timezone.now()
        if options["dry_run"]:
            self._say(rule, now)
            return
        removed = 0
        with tqdm(desc="conversations", file=sys.stderr, disable=None) as bar:
            for step in prune_by_rule(rule, now):
                removed += step
                bar.update(step)
        self.stdout.write(f"{removed} conversations removed")

    def _say(self, rule: PruneRule, now: Any) -> None:
        plan = plan_pruning(rule, now, limit=MAX_COUNTED)
        for each in plan.conversations:
            self.stdout.write(_line(each))
        self.stdout.write(
            f"{len(plan.conversations)} conversations would go, with {plan.message_count} messages and "
            f"{plan.byte_size} bytes; {plan.staying_count} of the messages stay for forks; "
            f"{plan.busy_count} conversations stay because a turn is under way"
        )
        if plan.has_more:
            self.stdout.write(f"Only the first {MAX_COUNTED:,} were looked at.")


def _owner_id(name: str | None) -> Any:
    if not name:
        return None
    users = get_user_model()._default_manager
    found = users.filter(**{get_user_model().USERNAME_FIELD: name}).values_list("pk", flat=True).first()
    if found is None:
        raise CommandError(f"There is no user {name!r}.")
    return found


def _line(each: PlannedConversation) -> str:
    return (
        f"{each.id}  {each.active_at:%Y-%m-%d}  {each.owner or '-'}  {each.agent}  {each.message_count} messages  "
        f"{each.byte_size} bytes  {each.title}"
    )
