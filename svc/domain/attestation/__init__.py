"""Attestation: proof by a device's secure hardware, against a challenge of ours, that a report is of a genuine device.

Pure. A reader begins with `claim`, what a report carries and what is asked of it; then `chain` and `key_description`,
how certificates are verified and what they say; `trust`, whom to believe; `challenge`, the rule of single use.

Nothing is imported here: the store needs `challenge` alone, and the libraries that read certificates import slowly.
"""
