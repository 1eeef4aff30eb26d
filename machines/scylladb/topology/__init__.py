"""The cluster's topology: nodes, requests, transition states, fencing and coordinators (design document 001)."""
