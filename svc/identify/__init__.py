"""From a report to a verdict: what it says, whose it is, how suspicious, and the one transaction that stores it."""
