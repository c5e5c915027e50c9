"""Backups: snapshots of a store, segments of its operation log, and a store made from both again.

FOLDER/snapshot-20260105T100000.000Z/   one snapshot: `data.mdb`, `manifest.json`, and `pepper` if it was asked for
FOLDER/operations-TIMELINE-SEQUENCE.log  what was committed since: segments of a timeline's log, by their first batch
FOLDER/copied-TIMELINE.json             up to which batch and moment a timeline's log was copied, by its follower
FOLDER/.lock                             held while a snapshot is made or an old one removed
"""
