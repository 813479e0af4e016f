"""Code of the user raises: what its consumer receives, what is reported, and what is closed.

`kinds`, `places` and `consumers` are the tables. `observe` runs one row of each, and `page` writes
what it has seen into docs/errors.md. Each test file says what must follow from an error: of a
function, of a cleanup, of a subscriber.
"""
