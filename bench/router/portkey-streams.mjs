/**
 * Loaded before Portkey: with the newest @hono/node-server that its package asks for, it answers 500 instead of a
 * stream, because it changes headers of an answer that the adapter has not copied. Streams alone get a copy.
 */
const ownFetch = globalThis.fetch;
globalThis.fetch = async (...request) => {
  const answer = await ownFetch(...request);
  if (answer.headers.get('content-type') === 'text/event-stream')
    Object.defineProperty(answer, 'headers', { value: new Headers(answer.headers) });
  return answer;
};
