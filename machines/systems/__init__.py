"""Systems that join machines of several documents."""
