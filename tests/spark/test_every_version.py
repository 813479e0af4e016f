"""Each feature works with this version of Spark, or says that it needs a newer one.

``nox -s spark_matrix`` runs this file with every version.
"""

from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reactive_aio.spark import ModeUnavailable, spark_version
from reactive_aio.spark.spark_version import OLDEST, pyspark_version, require_known_version

from . import features
from .features import FEATURES, VERSIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[2] / "docs" / "spark.md"
# The collect() of these does not close its socket.
LEAVES_SOCKETS = pyspark_version() < (4, 2)
pytestmark = [
    pytest.mark.filterwarnings("ignore:Exception ignored in. <socket")
    for _ in range(LEAVES_SOCKETS)
]
ONE_LOOP = pytest.mark.asyncio(loop_factories=["asyncio"])


@pytest.mark.spark
@pytest.mark.thorough
@ONE_LOOP
@pytest.mark.parametrize("name", FEATURES)
async def test_a_feature_works_or_names_the_version(
    spark: "SparkSession", tmp_path: Path, name: str
) -> None:
    feature = FEATURES[name]
    if pyspark_version() >= feature.since:
        await feature.check(spark, tmp_path)
    elif name != "connect":  # whose server is not in the package before
        with pytest.raises(ModeUnavailable, match=r"needs PySpark 4\.\d or newer"):
            await feature.check(spark, tmp_path)


def test_the_page_has_the_table() -> None:
    assert features.table() in DOCS.read_text("utf-8"), "python -m tests.spark.features prints it"


def test_this_version_is_in_the_table() -> None:
    assert pyspark_version() in VERSIONS


def test_an_older_pyspark_is_refused_when_the_package_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(spark_version, "pyspark_version", lambda: (3, 4))
    with pytest.raises(
        ImportError, match=r"needs PySpark 3\.5 or newer, and 3\.4 is installed: pip"
    ):
        require_known_version()
    monkeypatch.setattr(spark_version, "pyspark_version", lambda: (0, 0))
    require_known_version()  # what is used says what to install
    assert VERSIONS[0] == OLDEST


def test_the_version_is_found_without_a_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(spark_version, "_packaged_version", lambda: "")
    assert pyspark_version.__wrapped__() == tuple(map(int, version("pyspark").split(".")[:2]))
    monkeypatch.setattr(spark_version, "_version_file", lambda: '__version__: str = "2.4.8.dev0"')
    assert pyspark_version.__wrapped__() == (2, 4)
