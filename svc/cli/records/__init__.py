"""Commands that show and change what a service knows: organizations, keys, events, visitors, webhooks."""
