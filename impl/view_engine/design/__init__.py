"""Design documents: views, their map and reduce functions, signatures."""
