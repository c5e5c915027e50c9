"""A program that reads the feed, or changes, and is killed for it: `python feed_consumer.py PORT KEY events|changes
[CURSOR]`.

It prints a line of JSON for each page that has rows: the rows, and the cursor behind them.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
from urllib.parse import urlencode


def main(port: str, key: str, what: str, cursor: str = "") -> None:
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
    order, name = ({"order": "oldest"}, "rows") if what == "events" else ({}, "changes")
    while True:
        query = {**order, "limit": "20", **({"after": cursor} if cursor else {})}
        connection.request("GET", f"/api/v1/{what}?{urlencode(query)}", headers={"x-api-key": key})
        response = connection.getresponse()
        page = json.loads(response.read())
        if response.status != 200:
            time.sleep(0.1)
            continue
        cursor = page["next_cursor"]
        if page[name]:
            sys.stdout.write(json.dumps({"rows": page[name], "cursor": cursor}) + "\n")
            sys.stdout.flush()
        if not page["has_more"]:
            time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
