"""A service that takes the readings of sensors: an example of reactive_aio, to be copied."""
