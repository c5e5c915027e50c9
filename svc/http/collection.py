"""The request collection for API tools (Postman v2.1 format), made from the OpenAPI document.

What may live here: a pure function from JSON to JSON. One folder per tag, one request per operation, filled in with the
examples of the document; the address and one key per security scheme are variables.
"""

from __future__ import annotations

import re

import msgspec

from svc.http import json_schema
from svc.http.json_schema import Json
from svc.http.openapi import JSON

FORMAT = "https://schema.getpostman.com/json/collection/v2.1.0/collection.json"
"""How a collection names its format; nothing is fetched from there."""
BASE_URL = "http://127.0.0.1:8080"
"""Where a service listens that was started without settings."""
HOST = "{{baseUrl}}"
ORIGIN = "http://localhost"
"""From which any public development key is accepted (decisions 2.7)."""


def collection(document: Json) -> Json:
    """A Postman v2.1 collection with a request for every operation of an OpenAPI document (decisions 9.2)."""
    schemes = document["components"]["securitySchemes"]
    return {
        "info": {
            "name": document["info"]["title"],
            "description": document["info"]["description"],
            "version": document["info"]["version"],
            "schema": FORMAT,
        },
        "item": [
            {
                "name": tag["name"],
                "description": tag["description"],
                "item": [
                    _request(document, method, path, operation)
                    for path, operations in document["paths"].items()
                    for method, operation in operations.items()
                    if operation["tags"] == [tag["name"]]
                ],
            }
            for tag in document["tags"]
        ],
        "variable": [
            {"key": "baseUrl", "value": BASE_URL + document["servers"][0]["url"]},
            *(
                {"key": name, "value": "", "description": scheme["description"]}
                for name, scheme in schemes.items()
                if scheme["in"] == "header"
            ),
        ],
    }


def _request(document: Json, method: str, path: str, operation: Json) -> Json:
    parameters = operation.get("parameters", [])
    schemes = document["components"]["securitySchemes"]
    in_headers = {name for name, scheme in schemes.items() if scheme["in"] == "header"}
    headers = [_pair(parameter) | {"disabled": True} for parameter in parameters if parameter["in"] == "header"]
    if {"publicKey": []} in operation["security"]:
        headers.insert(0, {"key": "Origin", "value": ORIGIN, "description": "The site that the SDK is on."})
    request: Json = {
        "method": method.upper(),
        "description": operation.get("description", operation["summary"]),
        "auth": _auth([way for way in operation["security"] if way.keys() <= in_headers]),
        "header": headers,
        "url": _url(path, parameters),
    }
    if "requestBody" in operation:
        schema = operation["requestBody"]["content"][JSON]["schema"]
        sent = msgspec.json.encode(json_schema.example(document["components"]["schemas"], schema))
        request["header"] = [{"key": "Content-Type", "value": JSON}, *headers]
        request["body"] = {
            "mode": "raw",
            "raw": msgspec.json.format(sent, indent=2).decode(),
            "options": {"raw": {"language": "json"}},
        }
    return {"name": operation["summary"], "request": request, "response": []}


def _auth(security: list[Json]) -> Json:
    """The first kind of key that will do."""
    if not security:
        return {"type": "noauth"}
    said = {"key": "x-api-key", "value": f"{{{{{next(iter(security[0]))}}}}}", "in": "header"}
    return {"type": "apikey", "apikey": [{"key": key, "value": value, "type": "string"} for key, value in said.items()]}


def _url(path: str, parameters: list[Json]) -> Json:
    """Path variables are `:name` in this format. Filters are there, switched off."""
    segments = re.sub(r"{(\w+)}", r":\1", path).strip("/").split("/")
    query = [_pair(parameter) | {"disabled": True} for parameter in parameters if parameter["in"] == "query"]
    return {
        "raw": "/".join([HOST, *segments]),
        "host": [HOST],
        "path": segments,
        "query": query,
        "variable": [_pair(parameter) for parameter in parameters if parameter["in"] == "path"],
    }


def _pair(parameter: Json) -> Json:
    value = str(parameter["schema"]["examples"][0])
    return {"key": parameter["name"], "value": value, "description": parameter["description"]}
