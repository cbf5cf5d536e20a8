/** What the checks of Node's libraries share; ../python/support.py tells what questions mean. */
import { isDeepStrictEqual } from 'node:util';

const { CAPSTAN_SERVER: server, CAPSTAN_KEY, CAPSTAN_MODEL } = process.env;
export const openaiUrl = `${server}/openai/v1`;
export const anthropicUrl = `${server}/anthropic`;
export const apiKey = CAPSTAN_KEY;
export const model = CAPSTAN_MODEL;

export const png = 'iVBORw0KGgo=';
export const hello = 'SAY "Hello, world"';
export const place = `SAY ${JSON.stringify('{"place":"Oslo"}')}`;
export const weather = 'CALL weather {"place":"Oslo"}\nSAY "It is {result} in Oslo"';
export const rain = 'It is rain in Oslo';
export const hang = 'HANG';
export const parameters = {
  type: 'object',
  properties: { place: { type: 'string' } },
  required: ['place'],
  additionalProperties: false,
};

export function expect(seen, wanted) {
  if (isDeepStrictEqual(seen, wanted)) return;
  throw new Error(`${JSON.stringify(seen)} instead of ${JSON.stringify(wanted)}`);
}

/** Of a stream: the text has come, and not at once. */
export async function expectParts(parts, wanted = 'Hello, world') {
  const seen = [];
  for await (const part of parts) if (part) seen.push(part);
  expect(seen.join(''), wanted);
  if (seen.length < 2) throw new Error(`one part: ${JSON.stringify(seen)}`);
}

/** @param status null: no answer has come */
export async function expectStatus(status, work) {
  const error = await work().then(
    () => new Error('no error'),
    (thrown) => thrown,
  );
  const seen = error.status ?? error.statusCode ?? null;
  if (seen !== status || error.message === 'no error') throw error;
}

export async function check(client, features) {
  for (const [feature, work] of Object.entries(features)) {
    const fault = await work().then(
      () => null,
      (error) => `${error?.name}: ${error?.message}`,
    );
    console.log(JSON.stringify({ client: `${client} (Node)`, feature, fault }));
  }
}
