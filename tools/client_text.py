"""The frames of the generated sources of the client libraries: what stands around types and methods."""

PYTHON_TYPES = '''"""Bodies of requests and responses, as the service documents them. Generated from docs/openapi.json: `make reference`.

A response may have more fields than are here, and a field that lists its values may have others: both are added within
version 1.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
'''

PYTHON_OPERATIONS = '''"""The operations of the service, one method each, which {how}. Generated from docs/openapi.json: `make reference`."""

from __future__ import annotations

from typing import Any, Literal

from svc_client.call import UNSET, Call, Unset, given, new_idempotency_key, path
from svc_client.types import {imports}


class {name}:
    """Every operation but those of the console. Each raises `ApiError` where the service refuses, and
    `UnreachableError` where it does not respond.
    """

    {define} _send(self, call: Call) -> Any:
        """The decoded body of the response; `None` without one."""
        raise NotImplementedError

{methods}
'''

TYPESCRIPT_TYPES = """// Bodies of requests and responses, as the service documents them.
// Generated from docs/openapi.json: make reference
//
// A response may have more fields than are here: they are added within version 1.

/** The values that there are now. Others may come. */
export type Open<Values extends string> = Values | (string & {});"""

TYPESCRIPT_OPERATIONS = """// The operations of the service, one method each. Generated from docs/openapi.json: make reference

import { type Call, segment } from "./call.js";
import type {
  %(imports)s,
} from "./types.js";

/**
 * Every operation but those of the console. Each rejects with `ApiError` where the service refuses, and with
 * `UnreachableError` where it does not respond.
 */
export abstract class Operations {
  protected abstract send<Answer>(call: Call): Promise<Answer>;

%(methods)s
}
"""
