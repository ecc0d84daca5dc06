"""`probe_model NAME`: ask a live model a few small questions, print what they show, and remember it."""

import asyncio
import json
from argparse import ArgumentParser
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from chat.errors import ModelNotConfigured
from chat.llm.adapters.transport import close_clients
from chat.llm.probing.probe import OVERFLOW_TOKENS, SECONDS, Report, address_of, announcement, probe, remember
from chat.llm.registry import inquire_of, name_of


class Command(BaseCommand):
    help = (
        "Ask a live model a few small questions, print what it can do and why that is known, and remember it. How much "
        "it asks is printed first."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="provider/model, or default.")
        parser.add_argument("--yes", action="store_true", help="ask without confirmation")
        parser.add_argument("--seconds", type=float, default=SECONDS, help="limit of each question")
        parser.add_argument(
            "--overflow-tokens",
            type=int,
            default=OVERFLOW_TOKENS,
            help="size of the one large request, which shows how a model refuses what it cannot hold; 0: none",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object a line")

    def handle(self, *_args: Any, **options: Any) -> None:
        name = name_of(options["name"])
        seconds, overflow = max(1.0, options["seconds"]), max(0, options["overflow_tokens"])
        try:
            address = address_of(name)
            asyncio.run(inquire_of([name]))
            self.stderr.write(f"{name} at {address}")
            self.stderr.write(announcement(name, seconds=seconds, overflow_tokens=overflow))
            if not options["yes"] and not _agreed():
                raise CommandError("Nothing was asked.")
            report = asyncio.run(_probed(name, seconds, overflow))
        except ModelNotConfigured as error:
            raise CommandError(error.message) from error
        self._print(report, is_json=options["json"])
        if not report.has_answered:
            raise CommandError(report.problem or "Nothing was found out.")

    def _print(self, report: Report, *, is_json: bool) -> None:
        if is_json:
            for finding in report.findings:
                self.stdout.write(json.dumps(asdict(finding), ensure_ascii=False))
        else:
            width = max(len(finding.cell) for finding in report.findings)
            for finding in report.findings:
                self.stdout.write(f"{finding.ability:<15} {finding.cell:<{width}}  {finding.why}".rstrip())
        if report.has_answered:
            asked = f"{report.questions} questions in {report.requests} requests"
            end = f" It ended early: {report.problem}" if report.problem else ""
            self.stderr.write(f"Asked {asked}; what was found is remembered for {report.name}.{end}")


async def _probed(name: str, seconds: float, overflow_tokens: int) -> Report:
    try:
        report = await probe(name, seconds=seconds, overflow_tokens=overflow_tokens)
        if report.has_answered:
            await remember(report)
        return report
    finally:
        await close_clients()


def _agreed() -> bool:
    try:
        return input("Ask? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False
