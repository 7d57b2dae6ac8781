"""The settings themselves: each field with its default, unit, meaning and limits."""
