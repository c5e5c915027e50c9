"""How a member signs in: by password, by an OpenID provider, by a link."""
