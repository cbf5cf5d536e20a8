/** The open wait of a step: its words, and lines of a shell that end it. */
import { execFileSync } from 'node:child_process';
import type { Json } from '@capstan/core/contracts/primitives';
import { expect, test } from 'vitest';
import {
  commandsForEvent,
  describeOpenWait,
  examplePayload,
} from '../src/pages/run/drawer/waits/wait-model.ts';

const open_wait = { since: '2026-01-01T00:00:00Z', until: null };

test.each([
  [{ awaiting: 'callback', endpoint: 'http://gpu-1:9000' }, 'Waits for the answer of gpu-1:9000'],
  [{ awaiting: 'callback' }, 'Waits for its answer'],
  [
    { awaiting: 'event', event: 'paid', open_wait: { ...open_wait, event_key: null } },
    'Waits for the event paid',
  ],
  [
    { awaiting: 'event', event: 'paid', open_wait: { ...open_wait, event_key: 'a "b"' } },
    String.raw`Waits for the event paid with key "a \"b\""`,
  ],
  [{ awaiting: 'time', open_wait }, null],
  [{ awaiting: 'budget', open_wait }, null],
] as const)('the wait %j is shown as %j', (step, text) => {
  expect(describeOpenWait(step)).toBe(text);
});

/** The words that a shell makes of a command whose program is replaced. */
function wordsOf(command: string): string[] {
  const shown = `${command.replace(/^\S+/, 'show')}`;
  const script = `show() { for word in "$@"; do printf '%s\\0' "$word"; done; }; CAPSTAN_API_KEY=k; ${shown}`;
  return execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0').slice(0, -1);
}

test.each<[string | null, Json]>([
  [null, null],
  ['order-7', { sum: 12.5 }],
  [`it's $HOME; "x" \`y\``, [`a'b`, '\\', '\n']],
  ['-7', 'text'],
  ['Grüße 🎬', { a: { b: null } }],
])('a shell takes the event of key %j with payload %j as it is', (key, payload) => {
  const { curl, capstan } = commandsForEvent({ name: 'payment.settled', key, payload }, 'http://x:1');
  const words = wordsOf(curl);
  expect(words.slice(0, 3)).toEqual(['-X', 'POST', 'http://x:1/v1/events/payment.settled']);
  expect(words).toContain('Authorization: Bearer k');
  expect(JSON.parse(words.at(-1) ?? '')).toEqual({ ...(key === null ? {} : { key }), payload });
  const sent = wordsOf(capstan);
  expect(sent.slice(0, 2)).toEqual(['send', 'payment.settled']);
  expect(sent.at(-1)).toBe(key ?? (payload === null ? 'payment.settled' : JSON.stringify(payload)));
  expect(sent.includes('--')).toBe(key?.startsWith('-') ?? false);
});

test.each<[object | undefined, Json]>([
  [undefined, null],
  [{ type: 'object', required: ['sum'], properties: { sum: { type: 'number', minimum: 3 } } }, { sum: 3 }],
  [{ enum: ['paid', 'refused'] }, 'paid'],
])('the payload for the schema %j is %j', (schema, payload) => {
  const event = { name: 'paid', ...(schema === undefined ? {} : { schema: schema as Record<string, Json> }) };
  expect(examplePayload({ steps: [{ id: 'a', event }] }, 'a')).toEqual(payload);
});
