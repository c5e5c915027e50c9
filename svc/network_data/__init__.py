"""Network databases: what comes with the program, and what the operator puts into the folder of the data directory.

What may live here: reading such files, and the look-up compiled from them. What a look-up means is said in
`svc.domain.network`. Nothing here makes an outbound call but `fetch`, for `svc data update`, which an operator runs.
"""
