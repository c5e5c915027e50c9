"""What changes a store as a whole: an upgrade, a move to another engine, compaction, a new pepper."""
