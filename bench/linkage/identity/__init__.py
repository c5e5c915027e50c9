"""One browser, one visitor: whether equal devices stay apart, and who takes the id of whom.

    python -m bench.linkage.identity [--rows twins,private] [--seeds 5] [--json FILE]

The published streams show devices that differ. Here are the cases in which they do not, or in which somebody wants it
so: families, offices and carriers of equal devices with a token each (`twins`), private windows, profiles of one
computer and replayed reports (`private`), different programs of one machine and versions that go back (`programs`),
and copied reports, tokens and both (`takeover`). Each row puts visits to the service's matching in process
(`inprocess.Service`), several times with other random numbers, and judges the ids that come back.
"""
