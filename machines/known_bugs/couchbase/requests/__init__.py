"""Requests of the cluster manager, and changes of documents, that are refused or held up."""
