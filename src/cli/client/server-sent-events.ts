/** Reads a `text/event-stream` body, in chunks of any size, as the HTML standard says. */
export interface ServerSentEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

interface EventDraft {
  id: string | undefined;
  event: string;
  data: string[];
}

function emptyDraft(id: string | undefined): EventDraft {
  return { id, event: 'message', data: [] };
}

function applyField(draft: EventDraft, line: string): void {
  const colon = line.indexOf(':');
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
  if (name === 'id') draft.id = value;
  if (name === 'event') draft.event = value;
  if (name === 'data') draft.data.push(value);
}

/**
 * @param onActivity called for every chunk, comments included: the sign that the other side lives
 */
export async function* readServerSentEvents(
  body: AsyncIterable<Uint8Array>,
  onActivity: () => void,
): AsyncGenerator<ServerSentEvent> {
  const decoder = new TextDecoder();
  let rest = '';
  let draft = emptyDraft(undefined);
  for await (const chunk of body) {
    onActivity();
    rest += decoder.decode(chunk, { stream: true });
    // A \r at the very end may be half of a \r\n: it waits for the next chunk.
    const lines = rest.split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (line !== '') {
        applyField(draft, line);
        continue;
      }
      if (draft.data.length > 0) yield { ...draft, data: draft.data.join('\n') };
      draft = emptyDraft(draft.id);
    }
  }
}
