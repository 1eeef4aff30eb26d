"""Readers of forms that are no database's own: JSON lines, Parquet, OTLP, ITF."""
