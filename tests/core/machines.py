"""Hypothesis's state machines, for the type checkers."""

from typing import Any

from hypothesis import stateful

_stateful: Any = stateful


def run(machine: type[stateful.RuleBasedStateMachine]) -> None:
    """Run *machine* as one test."""
    _stateful.run_state_machine_as_test(machine)
