"""An algebra of numbers and conditions: terms in normal form, with rewrite rules that are data.

``terms`` defines the nodes, ``polynomials`` sums of products, ``ranges`` value ranges,
``conditions`` truth values and choices, ``rules`` the rewrite rules, ``floats`` the predicates in
them, and ``make`` builds normalised terms. ``reading`` translates integer expressions and sets,
``typed`` expressions with types, and ``evaluate`` defines the meaning of terms.
"""
