"""What every test runs with."""

# The first two before `loops`, which imports them: pytest has to import a plugin first.
pytest_plugins = (
    "tests.harness.effort",
    "tests.harness.leftover_checks",
    "tests.harness.process_setup",
    "tests.harness.loops",
    "tests.harness.groups",
    "tests.harness.blocking",
    "tests.harness.servers",
    "tests.node.packages",
    "pytester",
)
