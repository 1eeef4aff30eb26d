"""Secondary indexes that are built while their table is written to (002): masters, tablets, transactions, backfill."""
