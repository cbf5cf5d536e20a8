import { type ClientRequest, request } from 'node:http';
import { text } from 'node:stream/consumers';

export interface RawAnswer {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: string;
}

/**
 * Sends requests that `fetch` refuses: unnormalised paths, repeated headers, bodies that stop half-way.
 *
 * @param write sends the body; absent: no body
 */
export function sendRaw(
  url: string,
  { path, method = 'GET', headers }: { path: string; method?: string; headers: string[] },
  write: (request: ClientRequest) => void = (sent) => void sent.end(),
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url);
    const sent = request({ hostname, port, path, method, headers, setHost: false, agent: false });
    sent.once('response', (answer) => {
      text(answer).then(
        (body) => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body }),
        reject,
      );
    });
    sent.once('error', reject);
    write(sent);
  });
}
