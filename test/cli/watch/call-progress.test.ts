import type { RunEvent } from '@capstan/core/contracts/event';
import { expect, test } from 'vitest';
import { createProgressBoard } from '../../../src/cli/watch/watch-run.ts';

function anEvent(type: RunEvent['type'], data: object = {}): RunEvent {
  return { seq: 1, at: '2026-01-01T00:00:00Z', run_id: 'run_1', type, step_id: 'a', data } as RunEvent;
}

function progress(fraction: number): RunEvent {
  return anEvent('step.progress', { progress: fraction, message: 'encoding' });
}

test('the last progress of an instance is shown until the step continues', () => {
  const board = createProgressBoard();
  expect(board.describe('a', 0)).toBe('');
  board.note(progress(0.123), 0);
  expect(board.describe('a', 100)).toBe('12 % encoding');
  board.note(anEvent('step.succeeded'), 200);
  expect(board.describe('a', 200)).toBe('');
});

test('silence is shown when it is unusual for the instance', () => {
  const board = createProgressBoard();
  board.note(progress(0.1), 0);
  board.note(progress(0.2), 4_000);
  expect(board.describe('a', 16_000)).toBe('20 % encoding');
  expect(board.describe('a', 16_001)).toBe('20 % encoding, silent for 12.0s');
});

test('a line that a call logs does not lower its progress', () => {
  const board = createProgressBoard();
  board.note(progress(0.5), 0);
  board.note(anEvent('step.log', { level: 'info', message: 'x', endpoint: 'http://a' }), 10);
  expect(board.describe('a', 20)).toBe('50 % encoding');
});
