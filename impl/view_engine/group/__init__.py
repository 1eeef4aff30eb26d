"""The group server of one index: who may change it, what the header says of partitions, and when."""
