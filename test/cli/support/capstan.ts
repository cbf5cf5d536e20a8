import { runCapstan } from '../../../src/cli/program.ts';
import { serve } from './http-server.ts';
import { aShell } from './shell.ts';

/** Runs a command against an API that gives this answer. @returns what was printed and asked */
export async function capstan(words: readonly string[], answer: object | string, stdin = '') {
  const asked: string[] = [];
  const url = await serve(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    asked.push(`${request.method} ${request.url}${body === '' ? '' : ` ${body}`}`);
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  });
  const { shell, seen } = aShell({ stdin });
  await runCapstan([...words, '--url', url, '--key', 'k'], shell);
  return { ...seen, asked };
}
