"""What an RSocket server withstands: attackers, and a healthy client beside them.

``python -m benchmarks.siege`` measures, and writes the table of docs/what-a-server-withstands.md.
Server, attackers and healthy client are processes of their own.
"""
