/** What every request of the page shows of the server: that it answers, or that it does not. */

type AnswerListener = (isAnswered: boolean) => void;

const listeners = new Set<AnswerListener>();

/** @returns stops listening */
export function listenToAnswers(listener: AnswerListener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(isAnswered: boolean): void {
  for (const listener of listeners) listener(isAnswered);
}

/** A proxy answers so for a server that is away; an error of the server itself is JSON. */
function isOfProxy({ status, headers }: Response): boolean {
  return [502, 503, 504].includes(status) && headers.get('content-type')?.includes('json') !== true;
}

/** `fetch`, whose end the listeners receive. A request that the page gives up shows nothing. */
export async function fetchHeard(...request: Parameters<typeof fetch>): Promise<Response> {
  try {
    const response = await fetch(...request);
    tell(!isOfProxy(response));
    return response;
  } catch (error) {
    if (!(error instanceof DOMException && error.name === 'AbortError')) tell(false);
    throw error;
  }
}
