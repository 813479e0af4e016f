"""Write the table of docs/errors.md."""

import asyncio

from tests.contract.raising.page import PAGE, cells, with_table

PAGE.write_text(with_table(PAGE.read_text("utf-8"), cells(asyncio.new_event_loop)), "utf-8")
