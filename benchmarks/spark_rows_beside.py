"""What does a row cost where Spark leaves its reader a core? A service should have it so."""

from .spark_rows import rows_of
from .spark_tables import session_beside

question = rows_of("Rows of a Spark job, beside it", session_beside)
