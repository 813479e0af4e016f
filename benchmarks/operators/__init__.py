"""Every operator, compared with a bare loop or with `merge`."""
