"""Verdicts, and how they are shown: tables, explanations, JSON, JUnit."""
