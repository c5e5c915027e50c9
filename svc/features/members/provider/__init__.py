"""The OpenID provider by which members sign in: asked over the network, its tokens verified (docs/adr/0121).

What may live here: everything that opens a socket to the provider or reads what it says. Which role somebody gets, and
who may sign in, is decided in `svc.features.members.sign_in.openid` and `svc.features.members`.

`asking` makes one bounded request, `tokens` verifies ID tokens, `provider` does both in their order.
"""
