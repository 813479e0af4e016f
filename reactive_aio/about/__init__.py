"""``python -m reactive_aio``: what is installed here, and whether flows run.

It prints what a bug report needs: versions, the extras that are installed, the Java that Spark
would use. Then it runs small flows on each event loop that is installed, which takes about a
second. It changes nothing.
"""
