"""The web's edge: responses and sockets."""
