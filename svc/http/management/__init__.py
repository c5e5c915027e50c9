"""The management API: what a customer's automation may read and change of its own organization (interface 4.4).

Endpoint functions and their bodies, one module per subject. Typed in, typed out, no HTTP framework. That the path
names the key's own organization and that the role suffices is judged before any of them runs.
"""
