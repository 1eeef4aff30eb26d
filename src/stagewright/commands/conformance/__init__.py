"""What `test` needs: adapters, aims, reports."""
