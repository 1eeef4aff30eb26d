"""What was recorded: readers of logs, validation on Spark, reports."""
