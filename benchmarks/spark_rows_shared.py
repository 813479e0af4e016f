"""What does a row cost where Spark computes on every core, and its reader has none of its own?"""

from .spark_rows import rows_of
from .spark_tables import session

question = rows_of("Rows of a Spark job, on the cores that compute it", session)
