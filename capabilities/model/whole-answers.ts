/**
 * Answers of OpenAI-compatible providers that ignore `stream: true`: one JSON object instead of a stream of events. It is
 * read as a stream of one event, so that there is one way to an answer.
 */

interface Completion {
  readonly choices: readonly { readonly message?: unknown }[];
}

/** As a provider is given it. @throws Error that names what came instead of a stream */
export async function fetchStream(...request: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(...request);
  if (!response.ok) return response;
  const type = response.headers.get('content-type') ?? '';
  if (/^text\/html\b/i.test(type)) {
    await response.body?.cancel();
    throw new Error(`asked for a stream of events, got ${type}`);
  }
  if (!/^application\/json\b/i.test(type)) return response;
  const { status, headers } = response;
  const events = `data: ${toChunk(await response.text())}\n\ndata: [DONE]\n\n`;
  return new Response(events, {
    status,
    headers: { ...Object.fromEntries(headers), 'content-type': eventStream },
  });
}

const eventStream = 'text/event-stream';

/** What is no completion goes on as it is: an error, or nothing that anybody can read. */
function toChunk(text: string): string {
  const completion = readCompletion(text);
  if (completion === null)
    return text
      .split('\n')
      .map((line) => line.trim())
      .join(' ');
  const choices = completion.choices.map(({ message, ...choice }) => ({ ...choice, delta: message }));
  return JSON.stringify({ ...completion, object: 'chat.completion.chunk', choices });
}

function readCompletion(text: string): Completion | null {
  try {
    const value = JSON.parse(text);
    return Array.isArray(value?.choices) ? value : null;
  } catch {
    return null;
  }
}
