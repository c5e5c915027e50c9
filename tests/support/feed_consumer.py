"""A program that reads the feed and is killed for it: `python feed_consumer.py PORT KEY [CURSOR]`.

It prints a line of JSON for each page that has events: their ids, and the cursor behind them.
"""

from __future__ import annotations

import http.client
import json
import sys
import time
from urllib.parse import urlencode


def main(port: str, key: str, cursor: str = "") -> None:
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
    while True:
        query = {"order": "oldest", "limit": "20", **({"after": cursor} if cursor else {})}
        connection.request("GET", f"/api/v1/events?{urlencode(query)}", headers={"x-api-key": key})
        response = connection.getresponse()
        page = json.loads(response.read())
        if response.status != 200:
            time.sleep(0.1)
            continue
        cursor = page["next_cursor"]
        if page["rows"]:
            ids = [row["request_id"] for row in page["rows"]]
            sys.stdout.write(json.dumps({"ids": ids, "cursor": cursor}) + "\n")
            sys.stdout.flush()
        if not page["has_more"]:
            time.sleep(0.05)


if __name__ == "__main__":
    main(*sys.argv[1:])
