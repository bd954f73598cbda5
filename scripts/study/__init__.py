"""Scaling studies: what to run, how, what came of it, and the report. scripts/scaling_study.py puts them together."""
