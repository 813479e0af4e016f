"""Whether a suspended coroutine is cleaning up, so that cancelling it would cut the cleanup.

Cancelling a task raises ``CancelledError`` where it is suspended. That is right while it waits for
work. In a ``finally`` clause, the exit of an ``async with``, or an ``except`` clause that raises
again, it would leave a connection open or a transaction undecided. asyncio does not tell these
apart, so the place is read from the frames of the coroutine, as a debugger would:

* An ``except`` or ``finally`` clause begins with PUSH_EXC_INFO. An await in it belongs to a cleanup
  if the clause can only be left by raising from there on; if it can be left by POP_EXCEPT, the
  program has handled the error and goes on (a pause before the next attempt, for example). A
  ``finally`` clause is compiled a second time for the case without an error: the same positions in
  the source text, elsewhere in the code.
* The exit of an ``async with`` is marked in GET_AWAITABLE. That of a task group is no cleanup: it
  waits for the work of the tasks, and cancelling it cancels those.

Code without Python frames, such as compiled extensions, is taken for work.
"""

import dis
from collections.abc import Callable, Iterator
from functools import lru_cache
from gc import get_referents
from types import AsyncGeneratorType, CodeType, CoroutineType, FrameType, GeneratorType
from typing import Any, Final, NamedTuple, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

SUSPENDED: Final[dict[type, tuple[str, str]]] = {
    CoroutineType: ("cr_frame", "cr_await"),
    GeneratorType: ("gi_frame", "gi_yieldfrom"),
    AsyncGeneratorType: ("ag_frame", "ag_await"),
}
"""The attributes of what can be suspended: its frame, and what it awaits."""
_WRAPPERS: Final = frozenset(
    ("async_generator_asend", "async_generator_athrow", "coroutine_wrapper", "anext_awaitable")
)
"""What CPython puts between a coroutine and the generator or coroutine that it awaits."""
_GENERATED: Final = "<reactive_aio"
_State = tuple[int, int]
"""The index of an instruction, and how many clauses it is in, counted from where a walk began."""
_EXIT: Final[_State] = (-1, 0)
_own_cleanups: set[CodeType] = set()


def is_cleanup(function: F) -> F:
    """Declare that all of *function*, a coroutine function of this package, is a cleanup."""
    _own_cleanups.add(function.__code__)
    return function


def is_cleaning_up(awaited: Any) -> bool:
    """Whether *awaited*, which is suspended, or something that it awaits is in a cleanup."""
    is_leaving = False  # an `async with`, which is a cleanup unless it turns out to be a group
    for frame in suspended_frames(awaited):
        code = frame.f_code
        if code in _own_cleanups:
            return True
        if code.co_qualname == "TaskGroup.__aexit__":  # that of asyncio, and that of anyio
            return False
        if not code.co_exceptiontable or code.co_filename.startswith(_GENERATED):
            continue
        cleanups = _cleanups_in(code)
        if frame.f_lasti in cleanups.clauses:
            return True
        is_leaving = is_leaving or frame.f_lasti in cleanups.exits
    return is_leaving


def suspended_frames(awaited: Any) -> Iterator[FrameType]:
    """The frames of *awaited* and of what it awaits, the outermost first."""
    for frame, _ in suspended(awaited):
        yield frame


def suspended(awaited: Any) -> Iterator[tuple[FrameType, Any]]:
    """The same, each with the coroutine or generator that it belongs to."""
    while awaited is not None:
        names = SUSPENDED.get(awaited.__class__)
        if names is not None:
            frame = getattr(awaited, names[0])
            if frame is None:
                return
            yield frame, awaited
            awaited = getattr(awaited, names[1])
        elif awaited.__class__.__name__ in _WRAPPERS:
            awaited = next(iter(get_referents(awaited)), None)
        else:  # it may run a coroutine, and tell so as a coroutine does
            coroutine = getattr(awaited, "cr_await", None)
            awaited = coroutine if coroutine.__class__ in SUSPENDED else None


class _Cleanups(NamedTuple):
    """The offsets of the awaits of a function that belong to cleanups."""

    clauses: frozenset[int]
    exits: frozenset[int]


@lru_cache(maxsize=1024)
def _cleanups_in(code: CodeType) -> _Cleanups:
    return _Function(code).cleanups()


class _Function:
    """The instructions of a function, and where each of them may continue."""

    def __init__(self, code: CodeType) -> None:
        bytecode = dis.Bytecode(code)
        self._instructions = list(bytecode)
        self._index = {each.offset: i for i, each in enumerate(self._instructions)}
        self._handlers: dict[int, tuple[int, int]] = {}
        """By instruction: that of its handler, and the depth of the stack there."""
        entries: list[Any] = cast("Any", bytecode).exception_entries  # typeshed does not know it
        for entry in entries:
            target = self._index[entry.target]
            if self._instructions[target].opname == "PUSH_EXC_INFO":
                for offset in range(entry.start, entry.end, 2):
                    if (i := self._index.get(offset)) is not None:
                        self._handlers[i] = (target, entry.depth)

    def cleanups(self) -> _Cleanups:
        raising = {
            self._instructions[i].positions
            for handler, depth in set(self._handlers.values())
            for i in self._raising_awaits(handler, depth)
        }
        clauses, exits = set[int](), set[int]()
        is_exit = False
        for i, each in enumerate(self._instructions):
            if each.opname == "GET_AWAITABLE":
                is_exit = each.arg == 2
            elif each.opname == "SEND":
                if each.positions in raising:
                    clauses.update(self._suspensions(i))
                elif is_exit:
                    exits.update(self._suspensions(i))
                is_exit = False
        return _Cleanups(frozenset(clauses), frozenset(exits))

    def _suspensions(self, send: int) -> Iterator[int]:
        """The offsets at which the await with that SEND may be suspended."""
        first, end = self._instructions[send].offset, self._instructions[send].argval
        yield from range(first, end, 2)

    def _raising_awaits(self, handler: int, depth: int) -> Iterator[int]:
        """The awaits in a clause from which it can only be left by raising."""
        before: dict[_State, list[_State]] = {}
        seen: set[_State] = {(handler, 0)}
        waiting: list[_State] = [(handler, 0)]
        while waiting:
            state = waiting.pop()
            for following in self._following(state, depth):
                before.setdefault(following, []).append(state)
                if following not in seen:
                    seen.add(following)
                    if following != _EXIT:
                        waiting.append(following)
        leaving: set[_State] = {_EXIT}
        waiting = [_EXIT]
        while waiting:
            for state in before.get(waiting.pop(), ()):
                if state not in leaving:
                    leaving.add(state)
                    waiting.append(state)
        for i, level in seen - leaving:
            if self._instructions[i].opname == "SEND" and level:
                yield i

    def _following(self, state: _State, depth: int) -> Iterator[_State]:
        """Where the program may go on, within the clause and the clauses nested in it."""
        i, level = state
        instruction = self._instructions[i]
        name = instruction.opname
        if name in ("RERAISE", "RAISE_VARARGS", "RETURN_VALUE", "RETURN_CONST"):
            return
        if name == "PUSH_EXC_INFO":
            level += 1
        elif name == "POP_EXCEPT":
            level -= 1
            if not level:
                if self._instructions[i + 1].opname != "RERAISE":
                    yield _EXIT
                return
        if instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs:
            yield self._index[instruction.argval], level
        if not name.startswith("JUMP"):
            yield i + 1, level
        handler = self._handlers.get(i)
        if handler is not None and handler[1] > depth:
            yield handler[0], level
