"""Keys of browsers and what is signed: proofs, verdicts and deferred tokens."""
