"""The two ends of a measured connection: each is a process that reads commands, one per line.

``serve`` listens on a free port of the loopback interface and prints it; ``call PORT`` connects to
it. Then a line requests work (``stream 20000``) or a reading (``cpu``, ``peak``), and a line
answers. The end of its input ends the process.
"""
