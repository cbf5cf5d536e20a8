/** Requests to a capability under test. A probe never throws: no answer is a finding like any other. */

export interface Reply {
  /** 0 when there was no answer. */
  readonly status: number;
  /** Undefined when the body is not JSON. */
  readonly body: unknown;
  /** What came, in a few words. */
  readonly summary: string;
}

export type Probe = (method: string, path: string, body?: string) => Promise<Reply>;

const timeoutMs = 10_000;

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function shorten(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.length > 120 ? `${line.slice(0, 120)}…` : line;
}

/** @param url base address of the instance */
export function createProbe(url: string): Probe {
  const base = url.replace(/(?<!\/)\/+$/, '');
  return async (method, path, body) => {
    const headers = { 'content-type': 'application/json' };
    const signal = AbortSignal.timeout(timeoutMs);
    const init: RequestInit = {
      method,
      redirect: 'manual',
      signal,
      ...(body === undefined ? {} : { body, headers }),
    };
    try {
      const response = await fetch(`${base}${path}`, init);
      const text = await response.text();
      return { status: response.status, body: parse(text), summary: `${response.status} ${shorten(text)}` };
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
      const reason = cause instanceof Error ? cause.message || cause.name : String(cause);
      return { status: 0, body: undefined, summary: `no answer (${reason})` };
    }
  };
}
