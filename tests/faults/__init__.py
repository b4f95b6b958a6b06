"""Faults planted into transforms and passes, one at a time: a proof must catch each.

:func:`planted` exchanges functions of the product for faulty ones while it lasts.
"""

from faults.planting import Fault, Patch, planted

__all__ = ["Fault", "Patch", "planted"]
