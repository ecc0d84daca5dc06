"""The results of coding tasks in words."""

import math
import statistics
from collections.abc import Sequence

from bench.coding.running import Outcome


def report(outcomes: Sequence[Outcome], model: str) -> str:
    """The table of a run, in words."""
    if not outcomes:
        return "no task of that name"
    passed = sum(each.passed for each in outcomes)
    low, high = interval(passed, len(outcomes))
    cost = sum(each.cost for each in outcomes)
    lines = [
        "",
        f"model          {model or 'scripted solutions'}",
        (
            f"passed         {passed} of {len(outcomes)}, {passed / len(outcomes):.0%} "
            f"(95 % interval {low:.0%} to {high:.0%})"
        ),
        (
            f"time           median {statistics.median(each.seconds for each in outcomes):.1f} s, "
            f"longest {max(each.seconds for each in outcomes):.1f} s"
        ),
        f"steps          median {statistics.median(each.steps for each in outcomes):g}",
        (
            f"tokens         {sum(each.input_tokens for each in outcomes):,} in, "
            f"{sum(each.output_tokens for each in outcomes):,} out"
        ),
        f"cost           {cost:.4f}" if cost else "cost           no price is known",
    ]
    for kind in dict.fromkeys(each.task.kind for each in outcomes):
        some = [each for each in outcomes if each.task.kind == kind]
        lines.append(f"  {kind:<14} {sum(each.passed for each in some)} of {len(some)}")
    return "\n".join(lines)


def interval(passed: int, count: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval of a rate (Wilson 1927), which holds for few runs as well."""
    rate = passed / count
    middle = (rate + z * z / (2 * count)) / (1 + z * z / count)
    half = z / (1 + z * z / count) * math.sqrt(rate * (1 - rate) / count + z * z / (4 * count * count))
    return max(0.0, middle - half), min(1.0, middle + half)
