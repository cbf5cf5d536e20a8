import { text } from 'node:stream/consumers';
import { type CancelSignal, onCancel } from '@capstan/core/cancellation';
import type { RunEvent } from '@capstan/core/contracts/event';
import { expect, test } from 'vitest';
import { streamEvents } from '../../src/api/routes/events.ts';
import { waitFor } from '../support/wait.ts';

function event(seq: number, data: RunEvent['data'] = {}): RunEvent {
  return {
    seq,
    at: '2026-01-01T00:00:00.000Z',
    run_id: 'run_1',
    type: 'step.started',
    data,
  };
}

function options() {
  return { signal: new AbortController().signal, commentMs: 10_000 };
}

test('an event is one frame, whatever its data holds', async () => {
  async function* source() {
    yield event(7, { text: 'a\n\nid: 8\r\u2028' });
  }
  const frames = (await text(streamEvents(source, options()))).split('\n\n');
  expect(frames).toEqual([
    ': open',
    expect.stringMatching(/^id: 7\nevent: step\.started\ndata: \{[^\n]*\}$/),
    '',
  ]);
});

test('a quiet stream is kept open by comments', async () => {
  const ended = new AbortController();
  async function* source() {
    await new Promise((resolve) => ended.signal.addEventListener('abort', resolve));
    yield* [];
  }
  const stream = streamEvents(source, { signal: ended.signal, commentMs: 10 });
  let received = '';
  stream.on('data', (chunk) => {
    received += chunk;
  });
  await waitFor('three comments', () => received.split(': still here').length > 3);
  ended.abort();
  await waitFor('the end', () => stream.readableEnded);
});

test('a slow reader holds the source back', async () => {
  let produced = 0;
  async function* source() {
    for (; produced < 10_000; produced++) yield event(produced, { text: 'x'.repeat(1_000) });
  }
  const stream = streamEvents(source, options());
  await waitFor('a full buffer', () => stream.readableLength > 10_000);
  await new Promise((resolve) => setImmediate(resolve));
  expect(produced).toBeLessThan(100);
  stream.destroy();
});

test('a failing source cuts the stream off instead of ending it well', async () => {
  async function* source() {
    yield event(1);
    throw new Error('database gone');
  }
  await expect(text(streamEvents(source, options()))).rejects.toThrow('database gone');
});

test('a stream without a reader stops its source and its comments', async () => {
  let isStopped = false;
  async function* source(signal: CancelSignal) {
    try {
      yield event(1);
      await new Promise<void>((resolve) => onCancel(signal, resolve));
    } finally {
      isStopped = true;
    }
  }
  const stream = streamEvents(source, { ...options(), commentMs: 1 });
  stream.resume();
  stream.destroy();
  await waitFor('the source to be stopped', () => isStopped);
  expect(stream.destroyed).toBe(true);
});
