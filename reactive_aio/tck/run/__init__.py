"""Running laws: one in its watched thread, all of a subject, a subject in a process of its own."""
