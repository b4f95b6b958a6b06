"""One algebra of numbers and conditions: terms with a normal form, and rules that are data.

``terms`` holds the nodes, ``polynomials`` sums of products, ``ranges`` the least and the greatest
value, ``conditions`` truth values and choices, ``rules`` the tables, ``floats`` what these ask,
and ``make`` builds normal terms.  ``reading`` makes them of whole numbers and sets, ``typed`` of
expressions with types, and ``evaluate`` says what they mean.
"""
