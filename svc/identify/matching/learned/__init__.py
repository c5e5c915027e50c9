"""What the visits of an organization have taught: how often values, changes and returns are seen."""
