"""Mutation testing: small faults are put into a part of the service, one at a time, and its tests must find each."""
