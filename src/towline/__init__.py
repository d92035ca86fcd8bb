"""Towline."""
