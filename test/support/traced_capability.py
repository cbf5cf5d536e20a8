"""A capability of Python's own library: it goes on with the trace that a call brings, and tells its span by hand."""
import json
import os
import signal
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ROUTER, TOKEN, COLLECTOR = sys.argv[1:4]
NAME = "traced.python"
STARTED = time.monotonic()
PRICE = {"type": "free", "rate_usd": 0}
SPEC = {
    "name": NAME,
    "version": "1.0.0",
    "description": "Says which trace it is in.",
    "input": {"type": "object"},
    "output": {"type": "object"},
    "cost_model": PRICE,
}


def send(method, url, body, headers=None):
    data = json.dumps(body).encode()
    headers = {"content-type": "application/json", **(headers or {})}
    request = urllib.request.Request(url, data=data, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as response:
        return response.read()


def tell_span(traceparent, began, ended):
    _, trace_id, parent_id, _ = traceparent.split("-")
    span = {
        "traceId": trace_id,
        "spanId": os.urandom(8).hex(),
        "parentSpanId": parent_id,
        "name": "work in Python",
        "kind": 2,
        "startTimeUnixNano": str(began),
        "endTimeUnixNano": str(ended),
    }
    service = {"key": "service.name", "value": {"stringValue": NAME}}
    scope = {"scopeSpans": [{"spans": [span]}], "resource": {"attributes": [service]}}
    send("POST", f"{COLLECTOR}/v1/traces", {"resourceSpans": [scope]})


class Capability(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body):
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        uptime = int((time.monotonic() - STARTED) * 1000)
        health = {"status": "ok", "name": NAME, "version": "1.0.0", "uptime_ms": uptime}
        self.answer(SPEC if self.path == "/spec" else health)

    def do_POST(self):
        began = time.time_ns()
        given = json.loads(self.rfile.read(int(self.headers["content-length"])))
        traceparent = self.headers["traceparent"]
        if traceparent is not None:
            tell_span(traceparent, began, time.time_ns())
        self.answer({"ok": True, "output": {**given, "traceparent": traceparent, "tracestate": self.headers["tracestate"]}})

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Capability)
endpoint = f"http://127.0.0.1:{server.server_address[1]}"
key = {"authorization": f"Bearer {TOKEN}"}


def stop(*_):
    try:
        send("DELETE", f"{ROUTER}/v1/capabilities/{NAME}", {"endpoint": endpoint}, key)
    finally:
        os._exit(0)


signal.signal(signal.SIGTERM, stop)
threading.Thread(target=server.serve_forever, daemon=True).start()
places = {"endpoint": endpoint, "spec_url": f"{endpoint}/spec", "health_url": f"{endpoint}/health"}
registration = {"name": NAME, "version": "1.0.0", "cost_model": PRICE, "tags": ["local"], **places}
send("POST", f"{ROUTER}/v1/capabilities", registration, key)
print("registered", flush=True)
while True:
    signal.pause()
