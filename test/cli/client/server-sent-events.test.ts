import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readServerSentEvents } from '../../../src/cli/watch/events.ts';

async function readAll(chunks: readonly Uint8Array[]) {
  const body = (async function* () {
    yield* chunks;
  })();
  const events = [];
  for await (const event of readServerSentEvents(body, () => undefined)) events.push(event);
  return events;
}

it('reads the same events however the bytes are cut, with any line ends', async () => {
  const lines = [
    ': hello',
    'id: 1',
    'event: run.queued',
    'data: {"a":"é日"}',
    '',
    'data:x',
    'data: y',
    '',
    'data: cut off',
  ];
  const expected = [
    { id: '1', event: 'run.queued', data: '{"a":"é日"}' },
    { id: '1', event: 'message', data: 'x\ny' },
  ];
  const cuts = fc.array(fc.nat({ max: 120 }), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(cuts, fc.constantFrom('\n', '\r\n'), async (places, end) => {
      const bytes = new TextEncoder().encode(lines.join(end));
      const sorted = [0, ...places.toSorted((a, b) => a - b), bytes.length];
      const chunks = sorted.slice(1).map((to, index) => bytes.slice(sorted[index], to));
      expect(await readAll(chunks)).toEqual(expected);
    }),
  );
});
