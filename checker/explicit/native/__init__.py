"""The native engine: successor and search code generated as LLVM IR from the ground form of a definition."""
