"""The shipped loop's distribution beside the target's, enumerated."""

from specdec.proof.enumeration import output_distribution, total_variation
from specdec.proof.toys import Case, run_loop
from specdec.rules import RULES


def shipped_error(case: Case, limit: int = 100_000, rule: str = "rejection") -> tuple[float, int]:
    """Return the total variation between the shipped loop's distribution and the target's, and the number of paths."""
    distribution, count = output_distribution(run_loop(lambda: case.task(RULES[rule]())), limit)
    return total_variation(distribution, case.exact_distribution()), count
