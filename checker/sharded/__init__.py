"""The search over hash shards: for state spaces beyond one machine, with any scheduler of tasks."""
