"""Tests of the house itself: packaging, documents, sessions, and the harness of the tests."""
