"""Machine code for one model: what LLVM gets to compile."""
