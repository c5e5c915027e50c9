"""The engine of the store: one LMDB environment. Only this package imports `lmdb`, and knows LMDB's file.

`engine.py` implements `svc.kernel.store.engine`, `transaction.py` its reader and writer; `environment.py` opens the
files, `free_space.py` keeps a reserve for deletes; `meta_pages.py` and `pages.py` check the file's structure;
`witness.py` says who has the file open, keeps it for one process, and finds an older file in its place.
"""
