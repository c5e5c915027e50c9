"""Recording: the one transaction of an identification, and its parts."""
