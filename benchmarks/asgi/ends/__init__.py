"""The servers of the measured WebSockets: each is a process that reads commands."""
