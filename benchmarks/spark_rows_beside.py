"""What does a row cost if Spark leaves a core to its reader, as a service should?"""

from .spark_rows import rows_of
from .spark_tables import session_beside

question = rows_of("Rows of a Spark job, beside it", session_beside)
