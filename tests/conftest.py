"""The harness, and how hard Hypothesis tries."""

import os

from hypothesis import HealthCheck, settings

# `quiet` before `loops`, which imports it: pytest wants to be the first to import a plugin.
pytest_plugins = (
    "tests.harness.start",
    "tests.harness.quiet",
    "tests.harness.loops",
    "tests.harness.blocking",
    "tests.node.packages",
    "pytester",
)

# No deadline: a first example pays for imports and caches, and machines get busy.
settings.register_profile(
    "house", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
# The same examples on every run, so that a red build is red for everybody.
settings.register_profile("ci", parent=settings.get_profile("house"), derandomize=True)
settings.register_profile("thorough", parent=settings.get_profile("house"), max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "house"))
