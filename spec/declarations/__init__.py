"""What a class declares beside its variables: actions, budgets, fairness, assumptions, reasons and scopes."""
