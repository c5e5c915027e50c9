"""The bare front: hypercorn and quart-trio as they come, reading the body and answering it with a constant.

python -m bench.bare PORT
"""

from __future__ import annotations

import sys

import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from quart import Response, request
from quart_trio import QuartTrio

RESPONSE = (
    b'{"request_id":"019b76da-a800-7752-8079-3cdead0412c1","deferred_token":"AQGbdtqoAHdSgHk83q0EEsEAAAGbfAEEAFNoFR1jmw'
    b'eeU1MJGrfkWyNThvjxTE4Cssuqq5_s_WAh","visitor_id":"0qppzPLvL54VURDkQrfS","visitor_is_new":false,"identifiable":true,'
    b'"visitor_confidence":100,"state":"enriched","suspect_score":0,"suspect_level":"low"}'
)

app = QuartTrio("bare")


@app.post("/api/v1/identify")
async def identify() -> Response:
    await request.get_data()
    return Response(RESPONSE, content_type="application/json")


def main() -> None:
    config = Config()
    config.bind = [f"127.0.0.1:{sys.argv[1]}"]
    config.accesslog = None
    config.errorlog = None
    trio.run(serve, app, config)


if __name__ == "__main__":
    main()
