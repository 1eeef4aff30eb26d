"""An indexed table in real processes: masters and tablet servers, each a process, with their rows in RocksDB.

`layout` says what lies in the directory of such a cluster, `supervisor` starts and stops its processes, `program` is
one of them: a `host` that carries out what masters, tablets and sessions of clients want (the same code that the
simulator runs). `client` is for whoever uses it.
"""
