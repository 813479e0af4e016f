"""What does a row cost if Spark leaves a core to its reader, as a service should?"""

from .rows import rows_of
from .tables import session_beside

question = rows_of("rows of Spark on one core", session_beside)
