"""The costs of a schedule, counted from its iteration domains."""
