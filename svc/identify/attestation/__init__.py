"""Attestation: proof by a device's secure hardware, against a challenge of ours, that a report is of a genuine device.

Pure. A reader begins with `claim`, what a report carries and what is asked of it; then `key_attestation`, how Android's
certificates are verified and what they say; `app_attest`, the same of Apple's devices; `trust`, certificates and whom
to believe; `challenge`, the rule of single use and what is kept of a device's key.

Nothing is imported here: the store needs `challenge` alone, and the libraries that read certificates import slowly.
"""
