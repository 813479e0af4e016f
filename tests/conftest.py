"""The harness, and how hard Hypothesis tries."""

import os

from hypothesis import HealthCheck, settings

# `leftover_checks` before `loops`, which imports it: pytest has to import a plugin first.
pytest_plugins = (
    "tests.harness.process_setup",
    "tests.harness.leftover_checks",
    "tests.harness.loops",
    "tests.harness.blocking",
    "tests.node.packages",
    "pytester",
)

# No deadline: a first example pays for imports and caches, and machines get busy.
settings.register_profile(
    "house", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
# The same examples on every run, so that a build fails on every machine or on none.
settings.register_profile("ci", parent=settings.get_profile("house"), derandomize=True)
settings.register_profile("thorough", parent=settings.get_profile("house"), max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "house"))
