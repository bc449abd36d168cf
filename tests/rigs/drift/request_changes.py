"""Single changes of requests in a copy of a real release: endpoints, queries, headers, bodies and timeouts."""

from __future__ import annotations

from .edited_release import Edit, Found, replace

R, P = "tinker/resources/", "tinker/lib/public_interfaces/"
MODELS, SERVICE, TRAINING = f"{R}models.py", f"{R}service.py", f"{R}training.py"
REST, ADMIN, HOLDER = f"{P}rest_client.py", f"{P}admin_client.py", "tinker/lib/internal_client_holder.py"
AUTH, CLIENT, FUTURE = "tinker/lib/_auth_token_provider.py", "tinker/_client.py", "tinker/lib/api_future_impl.py"
GET_INFO = "    async def get_info("
NEW = {("added", "endpoint", "endpoints")}
LIST = "GET /api/v1/checkpoints"
PARAMS = '                    params: dict[str, object] = {"limit": limit, "offset": offset}\n'
LIMIT = "self, limit: int"
OFFSET = ", offset: int = 0\n    ) -> AwaitableConcurrentFuture[types.CheckpointsListResponse]"


def method(body: str, more: str = "", top: str = "") -> Edit:
    """Return an edit that adds a method to a resource, other methods, and lines above the class."""
    added = f"    async def fresh(self, name: str) -> GetInfoResponse:\n        {body}\n\n{more}{GET_INFO}"
    return replace(MODELS, GET_INFO, added, (MODELS, "\n\nclass ", f"\n{top}\n\nclass "))


def query(new: str, top: str = "") -> Edit:
    """Return an edit of the query of the list of checkpoints."""
    lines = "".join(f"                    {line}\n" for line in new.splitlines())
    return replace(REST, PARAMS, lines, (REST, "\n\nclass ", f"\n{top}\n\nclass "))


def returned(call: str) -> str:
    """Return a statement that sends a request."""
    return f"return await self.{call}"


ADDED = {("added", "query", LIST)}
CAST = "cast_to=GetInfoResponse)"
SPEC = "from typing import NamedTuple\n\n\nclass _Spec(NamedTuple):\n    path: str\n\n\n"
REQUEST_CHANGES: dict[str, tuple[Edit, set[Found]]] = {
    "endpoint by a literal": (method(returned(f'_get("/api/v1/fresh", {CAST}')), NEW),
    "endpoint by a constant": (method(returned(f"_get(_FRESH, {CAST}"), top='_FRESH = "/api/v1/fresh"\n'), NEW),
    "endpoint by a constant of the class": (
        method(returned(f"_get(self.FRESH, {CAST}"), more='    FRESH = "/api/v1/fresh"\n\n'),
        NEW,
    ),
    "endpoint by a sum": (method(returned(f'_get("/api/v1" + "/fresh/" + name, {CAST}')), NEW),
    "endpoint by a formatted string in parts": (
        method(f'base = "/api/v1"\n        {returned("_get(")}f"{{base}}/fresh" f"/{{name}}", {CAST}'),
        NEW,
    ),
    "endpoint by format": (method(returned(f'_get("/api/{{}}/fresh/{{}}".format("v1", name), {CAST}')), NEW),
    "endpoint by percent": (method(returned(f'_get("/api/v1/fresh/%s" % name, {CAST}')), NEW),
    "endpoint by join": (method(returned(f'_get("/".join(["/api/v1", "fresh", name]), {CAST}')), NEW),
    "endpoint by an enum": (
        method(
            returned(f"_get(_Path.FRESH.value, {CAST}"),
            top='import enum\n\n\nclass _Path(str, enum.Enum):\n    FRESH = "/api/v1/fresh"\n',
        ),
        NEW,
    ),
    "endpoint by a table": (
        method(returned(f'_get(_PATHS["a"], {CAST}'), top='_PATHS = {"a": "/api/v1/fresh"}\n'),
        NEW,
    ),
    "endpoint by a function": (
        method(returned(f'_get(_path("fresh"), {CAST}'), top='def _path(name):\n    return f"/api/v1/{name}"\n'),
        NEW,
    ),
    "endpoint through a helper": (
        method(
            returned('_call("fresh")'),
            more=f'    async def _call(self, part):\n        return await self._get(f"/api/v1/{{part}}", {CAST}\n\n',
        ),
        NEW,
    ),
    "endpoint through two helpers": (
        method(
            returned('_call("fresh")'),
            more="    async def _call(self, part):\n        return await self._send_it('/api/v1/' + part)\n\n"
            f"    async def _send_it(self, path):\n        return await self._get(path, {CAST}\n\n",
        ),
        NEW,
    ),
    "endpoint through a function of the module": (
        method(
            'return await _fetch(self, path="/api/v1/fresh")',
            top=f"async def _fetch(resource, *, path):\n    return await resource._get(path, {CAST}\n",
        ),
        NEW,
    ),
    "endpoint through a function with the name of a client's method": (
        method(
            'return await _send(self, _Spec("/api/v1/fresh"))',
            top=f"{SPEC}async def _send(resource, spec):\n    return await resource._get(spec.path, {CAST}\n",
        ),
        NEW,
    ),
    "endpoint through a method with the name of a client's method": (
        method(
            'return await self._send(_Spec("/api/v1/fresh"))',
            more=f"    async def _send(self, spec):\n        return await self._get(spec.path, {CAST}\n\n",
            top=SPEC,
        ),
        NEW,
    ),
    "endpoint through client.request": (
        method('return await self._client.request("GET", "/api/v1/fresh", cast_to=GetInfoResponse)'),
        NEW,
    ),
    "endpoint through options": (
        method(
            "return await self._client.request(GetInfoResponse, "
            'FinalRequestOptions.construct(method="get", url="/api/v1/fresh"))',
            top="from .._models import FinalRequestOptions\n",
        ),
        NEW,
    ),
    "endpoint by a variable method": (
        method(f'send = self._get\n        return await send("/api/v1/fresh", {CAST}'),
        NEW,
    ),
    "endpoint by a partial function": (
        method(
            'send = functools.partial(self._get, cast_to=GetInfoResponse)\n        return await send("/api/v1/fresh")',
            top="import functools\n",
        ),
        NEW,
    ),
    "endpoint removed": (
        replace(HOLDER, '"/api/v1/cancel_future"', '"/elsewhere"'),
        {
            ("removed", "endpoint", "endpoints"),
            ("added", "endpoint", "endpoints"),
        },
    ),
    "method changed": (
        replace(
            REST,
            'await client.put(\n                        f"/api/v1/sessions/{session_id}/project"',
            'await client.post(\n                        f"/api/v1/sessions/{session_id}/project"',
        ),
        {("removed", "endpoint", "endpoints"), ("added", "endpoint", "endpoints")},
    ),
    "query by dict": (query("params = dict(limit=limit, offset=offset, page=limit)"), ADDED),
    "query by a spread": (query('base = {"limit": limit, "offset": offset}\nparams = {**base, "page": limit}'), ADDED),
    "query by update": (query('params = {"limit": limit, "offset": offset}\nparams.update({"page": limit})'), ADDED),
    "query by update with keywords": (
        query('params = {"limit": limit, "offset": offset}\nparams.update(page=limit)'),
        ADDED,
    ),
    "query by a union": (query('params = {"limit": limit, "offset": offset} | {"page": limit}'), ADDED),
    "query by a union in place": (
        query('params = {"limit": limit, "offset": offset}\nparams |= {"page": limit}'),
        ADDED,
    ),
    "query by setdefault": (
        query('params = {"limit": limit, "offset": offset}\nparams.setdefault("page", limit)'),
        ADDED,
    ),
    "query under a condition": (
        query('params = {"limit": limit, "offset": offset}\nif offset:\n    params["page"] = limit'),
        ADDED,
    ),
    "query by a conditional expression": (
        query('params = {"limit": limit, "offset": offset, **({"page": limit} if offset else {})}'),
        ADDED,
    ),
    "query by a constant": (
        query('params = {"limit": limit, "offset": offset, _PAGE: limit}', top='_PAGE = "page"\n'),
        ADDED,
    ),
    "query by a function": (
        query(
            "params = _params(limit, offset)",
            top='def _params(a, b):\n    return {"limit": a, "offset": b, "page": a}\n',
        ),
        ADDED,
    ),
    "query in a loop": (
        query('params = {"limit": limit, "offset": offset}\nfor key in ("page", "size"):\n    params[key] = limit'),
        ADDED,
    ),
    "query in the path": (replace(REST, '"/api/v1/checkpoints"', '"/api/v1/checkpoints?page=1"'), ADDED),
    "query removed": (query('params = {"limit": limit}'), {("removed", "query", LIST)}),
    "query renamed": (
        query('params = {"limit": limit, "start": offset}'),
        {("removed", "query", LIST), ("added", "query", LIST)},
    ),
    "query default": (
        replace(
            REST,
            f"{LIMIT} = 100{OFFSET}",
            f"{LIMIT} = 50{OFFSET}",
        ),
        {("changed", "default", f"{LIST}?limit")},
    ),
    "field of a body in place": (
        replace(REST, 'body={"ttl_seconds": ttl_seconds}', 'body={"ttl_seconds": ttl_seconds, "why": "x"}'),
        {("changed", "request", "PUT /api/v1/training_runs/{}/checkpoints/{}/ttl")},
    ),
    "response changed": (
        replace(
            SERVICE,
            '"/api/v1/healthz",\n            cast_to=HealthResponse',
            '"/api/v1/healthz",\n            cast_to=AuthTokenResponse',
        ),
        {("changed", "response", "GET /api/v1/healthz")},
    ),
    "mode of a dump": (
        replace(MODELS, "exclude_none=True", "exclude_none=False"),
        {("changed", "dump", "POST /api/v1/create_model")},
    ),
    "dump of set fields": (
        replace(MODELS, "exclude_unset=False", "exclude_unset=True"),
        {("changed", "dump", "POST /api/v1/create_model")},
    ),
    "dump without a field": (
        replace(MODELS, 'mode="json"', 'mode="json", exclude={"lora_config"}'),
        {("changed", "dump", "POST /api/v1/create_model")},
    ),
    "dump by alias": (
        replace(MODELS, 'mode="json"', 'mode="json", by_alias=True'),
        {("changed", "dump", "POST /api/v1/create_model")},
    ),
    "header added to a call": (
        replace(
            f"{P}sampling_client.py",
            '"X-Tinker-Sampling-Backpressure": "1"',
            '"X-Tinker-Sampling-Backpressure": "1", "X-New": "1"',
        ),
        {("added", "request header", "x-new")},
    ),
    "value of a header": (
        replace(
            f"{P}sampling_client.py", '"X-Tinker-Sampling-Backpressure": "1"', '"X-Tinker-Sampling-Backpressure": "2"'
        ),
        {("changed", "request header", "x-tinker-sampling-backpressure")},
    ),
    "header renamed": (
        replace(FUTURE, '"X-Tinker-Request-Iteration"', '"X-Tinker-Iteration"'),
        {
            ("added", "request header", "x-tinker-iteration"),
            ("removed", "request header", "x-tinker-request-iteration"),
        },
    ),
    "header removed": (
        replace(FUTURE, '            "X-Tinker-Request-Type": self.request_type,\n', ""),
        {("removed", "request header", "x-tinker-request-type")},
    ),
    "header of one of two calls removed": (
        replace(
            "tinker/cli/auth_api.py",
            '"DELETE", "/api/v1/auth/apikey/me", headers={"X-API-Key": api_key}',
            '"DELETE", "/api/v1/auth/apikey/me"',
        ),
        {("removed", "header of a call", "DELETE /api/v1/auth/apikey/me x-api-key")},
    ),
    "header of all requests": (
        replace(
            "tinker/_base_client.py",
            '"Accept": "application/json",\n',
            '"Accept": "application/json",\n            "X-Client": "py",\n',
        ),
        {("added", "request header", "x-client")},
    ),
    "header by a store": (
        replace(
            HOLDER,
            "    headers = {}\n",
            '    headers = {}\n    headers[_REGION] = "eu"\n',
            (HOLDER, "\n\ndef _get_default_headers", '\n_REGION = "X-Region"\n\n\ndef _get_default_headers'),
        ),
        {("added", "request header", "x-region")},
    ),
    "header by update": (
        replace(HOLDER, "    headers = {}\n", '    headers = {}\n    headers.update({"X-Region": "eu"})\n'),
        {("added", "request header", "x-region")},
    ),
    "header read from responses": (
        replace(
            "tinker/_base_client.py",
            'response.headers.get("x-deprecation-note")',
            'response.headers.get("x-deprecation-note") or response.headers["x-notice"]',
        ),
        {("added", "response header", "x-notice")},
    ),
    "header of responses renamed": (
        replace("tinker/_base_client.py", 'response.headers.get("x-should-retry")', 'response.headers.get("x-retry")'),
        {("added", "response header", "x-retry"), ("removed", "response header", "x-should-retry")},
    ),
    "authentication by another header": (
        Edit(
            replaced=(
                (AUTH, 'request.headers["X-API-Key"] = token', 'request.headers["Authorization"] = f"Bearer {token}"'),
            )
        ),
        {("added", "request header", "authorization")},
    ),
    "media type of a body": (
        replace(TRAINING, '"application/x-protobuf"', '"application/protobuf"'),
        {
            ("added", "media type", "POST /api/v1/forward_backward"),
            ("removed", "media type", "POST /api/v1/forward_backward"),
            ("changed", "request header", "content-type"),
        },
    ),
    "content encoding": (
        replace(TRAINING, '"Content-Encoding"] = "zstd"', '"Content-Encoding"] = "gzip"'),
        {("changed", "request header", "content-encoding")},
    ),
    "accepted media type": (
        replace(FUTURE, 'headers["Accept"] = "application/x-protobuf"', 'headers["Accept"] = "application/cbor"'),
        {("changed", "request header", "accept")},
    ),
    "timeout of a call": (
        replace(HOLDER, '{"max_retries": 0, "timeout": 30}', '{"max_retries": 0, "timeout": 60}'),
        {("changed", "timeout", "POST /api/v1/cancel_future")},
    ),
    "timeout that a caller passes": (
        replace(FUTURE, "timeout=45,", "timeout=90,"),
        {("changed", "timeout", "POST /api/v1/retrieve_future")},
    ),
    "timeout of a call added": (
        replace(
            SERVICE,
            '"/api/v1/healthz",\n',
            '"/api/v1/healthz",\n            options=make_request_options(timeout=3),\n',
        ),
        {("added", "timeout", "GET /api/v1/healthz")},
    ),
    "timeout of all requests": (
        replace("tinker/_constants.py", "timeout=60", "timeout=120"),
        {("changed", "timeout", "all requests")},
    ),
    "format of lists in queries": (
        replace(CLIENT, 'array_format="comma"', 'array_format="repeat"'),
        {("changed", "query format", "all requests")},
    ),
}
