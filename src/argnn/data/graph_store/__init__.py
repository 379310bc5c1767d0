"""Graphs on the disk: a folder of arrays that are mapped into memory, and a header."""
