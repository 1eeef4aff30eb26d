"""Results for people and for continuous integration: text, JSON, JUnit, SARIF, GitHub."""
