"""People: the routes of members, and how a member signs in by a password, an invitation or an OpenID provider.

What may live here: endpoints and what they need to tell who somebody is. Sessions on the wire are in `sessions`.
"""
