"""What people write in a chaos run: scripts for the provider, each with a marker of its own."""

import random


def plain(dice: random.Random, marker: str) -> str:
    """Text, now and then after some reasoning."""
    lines = [f"marker: {marker}"]
    if dice.random() < 0.3:
        lines.append(f"reason {dice.randint(3, 12)} words at {_rate(dice)}/s")
    lines.append(f"stream {dice.randint(20, 90)} words at {_rate(dice)}/s")
    return "\n".join(lines)


def broken(dice: random.Random, marker: str) -> str:
    """Text whose connection to the provider breaks once in the middle."""
    count = dice.randint(30, 70)
    return f"marker: {marker}\nstream {count} words at {_rate(dice)}/s\ndrop after {dice.randint(1, count)} chunks"


def tools(dice: random.Random, marker: str) -> str:
    """One or two rounds of calls between texts."""
    zone = dice.choice(["UTC", "Europe/Berlin", "Asia/Tokyo", "Nowhere/Land"])
    call = f'call tool current_time {{"time_zone": "{zone}"}}'
    lines = [f"marker: {marker}", f"rate {_rate(dice)}/s"]
    if dice.random() < 0.5:
        lines.append(f"stream {dice.randint(5, 30)} words")
    lines += [call] * dice.randint(1, 3)
    if dice.random() < 0.4:
        lines += [f"stream {dice.randint(3, 12)} words", call]
    return "\n".join([*lines, "say: The answer was {results}.", f"stream {dice.randint(10, 40)} words"])


def long(dice: random.Random, marker: str) -> str:
    """Text long enough to be stopped."""
    return f"marker: {marker}\nstream {dice.randint(200, 400)} words at {_rate(dice)}/s"


def _rate(dice: random.Random) -> int:
    return dice.randint(25, 55)
