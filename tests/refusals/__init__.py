"""Schedules that change a result, each with the nearest one that does not.

``case`` says what a case is, ``oracle`` works out by enumeration what is wrong with
it, and every other module holds the cases of one family in a tuple ``CASES``.
"""
