"""Mapping files: how the columns or lines of any log become events, as the user writes it in TOML."""
