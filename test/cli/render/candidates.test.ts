import type { Candidate } from '@capstan/core/contracts/decision';
import { expect, test } from 'vitest';
import type { TableLayout } from '../../../src/cli/render/print.ts';
import { renderDecision } from '../../../src/cli/render/routing.ts';

const candidate: Candidate = {
  endpoint: 'http://gpu:8000',
  tier: 1,
  cost_usd: 0,
  wait_ms: 23_000,
  score: 0.025,
  verdict: 'chosen',
};

function headAndRows(candidates: readonly Candidate[]): string[] {
  const decision = {
    decision_id: 'dec_1',
    chosen: 'http://gpu:8000',
    reason: 'it is free',
    candidates: [...candidates],
    reserved_usd: 0,
    settled_usd: null,
  };
  const same = (text: string): string => text;
  const style = { green: same, dim: same } as TableLayout['style'];
  return renderDecision(decision, { width: 200, style }).slice(1);
}

test('the table shows loads where the call needs something loaded', () => {
  expect(headAndRows([candidate])[0]).not.toContain('LOAD');
  const [head, loaded, cold, unknown] = headAndRows([
    { ...candidate, resident: true },
    { ...candidate, resident: false, load_ms: 22_000 },
    { ...candidate, resident: false },
  ]);
  expect(head).toMatch(/COST +LOAD +WAIT/);
  expect([loaded, cold, unknown]).toEqual([
    expect.stringMatching(/\$0 +loaded +23\.0s/),
    expect.stringMatching(/\$0 +22\.0s +23\.0s/),
    expect.stringMatching(/\$0 +unknown +23\.0s/),
  ]);
});
