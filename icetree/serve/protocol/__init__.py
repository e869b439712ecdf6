"""The words of the protocol: requests, answers, names and errors."""
