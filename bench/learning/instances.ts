/**
 * One HTTP server with all capabilities and all models of a side. It knows by the input's `ref` which failure it has
 * before it, keeps whether the input that it took was the right one, and answers a question as the advisor does.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { Registration } from '@capstan/core/contracts/capability';
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import { createRandom } from '../shared/random.ts';
import { answerQuestion, type Question } from './advisor.ts';
import { schemas } from './capabilities.ts';
import type { Failure } from './failures.ts';
import { isSame } from './kind.ts';

/** The first is level 1. */
const models = [
  { name: 'model.fast', usd: 0.0005 },
  { name: 'model.capable', usd: 0.004 },
  { name: 'model.reasoning', usd: 0.02 },
  { name: 'model.top', usd: 0.06 },
] as const;

export interface Instances {
  readonly registrations: readonly Registration[];
  /** Whether the accepted input was the right one. */
  readonly taken: ReadonlyMap<Failure, boolean>;
  close(): Promise<void>;
}

const version = '1.0.0';

interface Offer {
  readonly name: string;
  readonly usd: number;
  readonly input: JsonObject;
}

const offers: readonly Offer[] = [
  ...Object.entries(schemas).map(([name, input]) => ({ name, usd: 0, input })),
  ...models.map(({ name, usd }) => ({ name, usd, input: { type: 'object' } })),
];

function costOf({ usd }: Offer): Registration['cost_model'] {
  return {
    type: usd === 0 ? 'free' : 'per_call',
    rate_usd: usd,
  };
}

function answer(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
  response.writeHead(status, headers).end(text);
}

/** The level, and the text between the marks of the prompt. */
function readQuestion(name: string, input: JsonObject): Question {
  const messages = input.messages as readonly { readonly role: string; readonly content: string }[];
  const [system = '', user = ''] = messages.map(({ content }) => content);
  const kind = /Prompt (advise|correct)\//.exec(system)?.[1];
  const data = /^<<<DATA \w+\n(.*)\nDATA \w+>>>$/.exec(user)?.[1];
  if (kind === undefined || data === undefined) throw new Error(`no prompt that is known: ${system}`);
  const level = models.findIndex((model) => model.name === name) + 1;
  return { level, kind: kind as Question['kind'], data: JSON.parse(data) };
}

export async function startInstances(failures: readonly Failure[], seed: number): Promise<Instances> {
  const random = createRandom(seed);
  const taken = new Map<Failure, boolean>();
  const failureOf = (input: Json | undefined): Failure => {
    const found = failures[Number(String((input as JsonObject).ref).slice(1))];
    if (found === undefined) throw new Error('an input without a known ref');
    return found;
  };

  const ask = (name: string, input: JsonObject, response: ServerResponse): void => {
    const question = readQuestion(name, input);
    const said = answerQuestion(question, failureOf(question.data.input), random);
    const usage = { input_tokens: 1, output_tokens: 1 };
    const output = { json: said, model: name, finish_reason: 'stop', usage };
    answer(response, 200, { ok: true, output });
  };

  const run = (input: JsonObject, response: ServerResponse): void => {
    const failure = failureOf(input);
    const isRight = isSame(input, failure.cured);
    const isTaken = isRight || failure.takes(input);
    if (isTaken) taken.set(failure, isRight);
    const said = isTaken ? { ok: true, output: {} } : { ok: false, error: failure.say(input) };
    answer(response, isTaken ? 200 : 422, said);
  };

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [, name = '', path] = (request.url ?? '').split('/');
    const offer = offers.find((one) => one.name === name) as Offer;
    if (path === 'health') return answer(response, 200, { status: 'ok', name, version, uptime_ms: 1 });
    if (path === 'spec') {
      const { input } = offer;
      const spec = { name, version, description: name, input, output: { type: 'object' } };
      return answer(response, 200, { ...spec, cost_model: costOf(offer) });
    }
    const input = (await json(request)) as JsonObject;
    if (offer.usd > 0) ask(name, input, response);
    else run(input, response);
  };

  const server = createServer((request, response) => {
    handle(request, response).catch((error) => answer(response, 500, { ok: false, error: String(error) }));
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    registrations: offers.map((offer) => {
      const endpoint = `http://127.0.0.1:${port}/${offer.name}`;
      return {
        name: offer.name,
        version,
        endpoint,
        spec_url: `${endpoint}/spec`,
        health_url: `${endpoint}/health`,
        cost_model: costOf(offer),
        tags: ['local'],
        max_concurrency: 64,
        settle: 'computed',
      };
    }),
    taken,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
