"""Turns a text into capitals. Python's standard library is all it needs.

It serves three paths at HOST and PORT: /health, /spec and /exec. Registration, heartbeats and the
end are done by `capstan capability start`, which reads from package.json how to start it.
"""

import json
import os
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

STARTED = time.monotonic()
FACTS = {"name": "shout", "version": "1.0.0"}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
SPEC = {
    **FACTS,
    "description": "Turns a text into capitals.",
    "input": TEXT,
    "output": TEXT,
    "cost_model": {"type": "free", "rate_usd": 0},
}


def shout(call):
    """The work. What it raises is the answer 422: this input cannot be worked on."""
    text = call["text"]
    if not isinstance(text, str):
        raise ValueError(f"text: expected a string, got {type(text).__name__}")
    return {"text": text.upper()}


class Handler(BaseHTTPRequestHandler):
    def answer(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        if self.path == "/health":
            uptime_ms = round((time.monotonic() - STARTED) * 1000)
            self.answer(200, {"status": "ok", **FACTS, "uptime_ms": uptime_ms})
        elif self.path == "/spec":
            self.answer(200, SPEC)
        else:
            self.answer(404, {"ok": False, "error": "no such path"})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path != "/exec":
            return self.answer(404, {"ok": False, "error": "no such path"})
        try:
            output = shout(json.loads(body))
        except Exception as error:
            return self.answer(422, {"ok": False, "error": f"{type(error).__name__}: {error}"})
        self.answer(200, {"ok": True, "output": output})

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = False  # so that server_close waits for calls under way


def main():
    server = Server((os.environ.get("HOST", "127.0.0.1"), int(os.environ.get("PORT", "8171"))), Handler)

    def stop(*_):
        threading.Thread(target=server.shutdown).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    server.serve_forever()
    server.server_close()


if __name__ == "__main__":
    main()
