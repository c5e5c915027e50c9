"""What every command uses: options, output, help, logs, and how it opens a data directory."""
