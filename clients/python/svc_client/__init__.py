"""Client of an svc service, for servers: identifications read and checked, webhooks verified, the management API.

`Client` blocks and `AsyncClient` runs under asyncio or trio; both have a method for each operation. `types` has the
shapes of what they return.
"""

from svc_client.call import UNSET
from svc_client.checks import Checked, CheckedVerdict, Decision, Problem, Verdict, decide
from svc_client.client import AsyncClient, Client
from svc_client.errors import ApiError, SvcError, UnreachableError, WebhookError
from svc_client.forwarding import visitor_headers
from svc_client.retries import Retries
from svc_client.verdicts import Expected
from svc_client.webhooks import WebhookEvent, verify_webhook

__all__ = [
    "UNSET",
    "ApiError",
    "AsyncClient",
    "Checked",
    "CheckedVerdict",
    "Client",
    "Decision",
    "Expected",
    "Problem",
    "Retries",
    "SvcError",
    "UnreachableError",
    "Verdict",
    "WebhookError",
    "WebhookEvent",
    "decide",
    "verify_webhook",
    "visitor_headers",
]
