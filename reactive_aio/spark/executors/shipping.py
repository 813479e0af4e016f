"""How a pipeline gets to Spark's workers: pickled by value, with errors that name what prevents it.

The function that Spark pickles contains nothing of this package but its text, so that a worker
without the package can say what is missing. The pipeline is inside it, as bytes.
"""

from collections.abc import Callable, Iterator
from functools import partial
from inspect import getclosurevars
from types import FunctionType, MethodType
from typing import Any, Final

from ...errors import ReactiveError
from ...stage import describe

_DEEPEST: Final = 5
"""How deep functions inside functions are searched for what cannot be pickled."""

_MISSING: Final = (
    "{function}: Spark's Python worker cannot import {module!r}: {error}. What the driver can "
    "import is not on the executors by itself. Install it there (in the image, or as an "
    "environment with --archives), or send it with the job: spark.addArtifacts('it.zip', "
    "pyfile=True), sparkContext.addPyFile('it.zip') or --py-files it.zip. The worker runs {python}."
)


class PipelineNotPicklable(ReactiveError, TypeError):
    """A function that cannot be sent to Spark's workers; the message names what prevents it."""


def pickle_pipeline(function: str, pipeline: Callable[..., Any]) -> bytes:
    """Pickle *pipeline* by value. What it refers to in importable modules is not copied."""
    from pyspark import cloudpickle

    untyped: Any = cloudpickle
    dumps: Callable[[Any], bytes] = untyped.dumps
    try:
        return dumps(pipeline)
    except Exception as error:
        culprit = next(_unpicklable(pipeline, dumps, ()), None)
        what = f"it refers to {culprit}, which" if culprit else "it"
        raise PipelineNotPicklable(
            f"{function}: {describe(pipeline)} cannot be sent to Spark's workers: {what} cannot be "
            f"pickled ({type(error).__name__}: {error}). Make it inside of the function; what is "
            "open, such as a client or a pool, belongs to one process: client = "
            "map_flow.resources(open_client) opens it in each worker, and `await client()` is it."
        ) from error


def _unpicklable(value: Any, dumps: Callable[[Any], bytes], path: tuple[str, ...]) -> Iterator[str]:
    """Yield the variables of a function, and of functions in them, that cannot be pickled."""
    for name, inner in _variables(value).items() if len(path) < _DEEPEST else ():
        try:
            dumps(inner)
        except Exception:
            here = (*path, name)
            yield from _unpicklable(inner, dumps, here)
            yield f"{' in '.join(map(repr, reversed(here)))} ({type(inner).__name__})"


def _variables(value: Any) -> dict[str, Any]:
    """What a function, or what stands for one, refers to by a name."""
    if type(value) is partial:
        arguments = {f"argument {i}": each for i, each in enumerate(value.args)}
        return {**_variables(value.func), **arguments}
    if isinstance(value, MethodType):
        return {"self": value.__self__}
    if not isinstance(value, FunctionType):
        return {}
    found = getclosurevars(value)
    return {**found.globals, **found.nonlocals}


def worker_function(
    function: str, pickled: bytes, options: dict[str, Any]
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what Spark calls in its workers, with an iterator of Arrow batches."""
    missing = _MISSING

    # A function inside a function is pickled by value, so it must not use the globals of this
    # module, nor mention a type of this package.
    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import pickle
        import sys

        try:
            from reactive_aio.spark.executors.partition_run import run_partition

            pipeline = pickle.loads(pickled)
        except ImportError as error:
            module = error.name or "a module"
            text = missing.format(
                function=function, module=module, error=error, python=sys.executable
            )
            raise ImportError(text, name=error.name) from error
        return run_partition(pipeline, batches, function=function, **options)

    return run
