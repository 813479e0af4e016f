"""The two ends of a connection that is measured: each is a process, told what to do line by line.

``serve`` listens on a free port of loopback and says which; ``call PORT`` connects to it. Then a
line asks for work (``stream 20000``) or for a reading (``cpu``, ``peak``); a line answers. The end
of its input ends the process.
"""
