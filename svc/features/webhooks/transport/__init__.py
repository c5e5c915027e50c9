"""Outgoing HTTP for webhooks: a checked address, one deadline, a bounded response (decisions 8.2, 8.7).

What may live here: everything that opens a socket to a customer's receiver, and nothing that decides when.

`resolver` asks for names, `connections` dials what was judged and keeps connections, `transport` makes one attempt,
and checks a target before it is stored. Rules about addresses are in `svc.features.webhooks.addresses`.
"""
