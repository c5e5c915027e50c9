"""What the pages of the console read: of the credential's own organization, in any of its environments.

The rows of the table of routes lie under `/console/api`. Changes are made by the routes of the management API.
"""
