"""Network databases: what comes with the program, and what the operator puts into the folder of the data directory.

What may live here: reading such files, writing them, and the look-up compiled from them. What a look-up means is said
in `svc.domain.network`. Nothing here makes an outbound call but `fetch`, for `svc data update`, and `free`, which runs
the operator's npm: commands that an operator runs.
"""
