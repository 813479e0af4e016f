"""Verdicts and their presentation: tables, explanations, JSON, JUnit."""
