"""`svc replay`: a file of reports through the pipeline of the service, and what would change.

A package of its own: it imports `svc`, which finds its command by name (`svc.cli.COMMANDS`) and imports nothing of it.
"""
