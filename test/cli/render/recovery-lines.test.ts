import { expect, it } from 'vitest';
import { describeFindings, describeRecovery, isWhole } from '../../../src/cli/commands/programs.ts';
import type { WholeRecovery } from '../../../src/processes/upkeep/recover.ts';

const call = { attempt_id: 'att_1', capability: 'cut', endpoint: 'http://10.0.0.7:8080' };

function aRecovery(report: Partial<WholeRecovery> = {}): WholeRecovery {
  return {
    other_cluster: null,
    temporal_address: '10.0.0.31:7233',
    temporal_namespace: 'capstan-2',
    last_at: '2026-11-22T03:12:44.120Z',
    open_runs: 3,
    undelivered_starts: 0,
    open_calls: 0,
    open_reviews: 1,
    pending_webhooks: 0,
    interrupted_calls: [],
    lost_acts: { made: [], revoked: [], rotated: [] },
    ended_sessions: 2,
    ended_login_links: 1,
    revoked_keys: [],
    search_attributes: [],
    search_attributes_fault: null,
    restarted_runs: 3,
    running_runs: 0,
    ended_in_temporal: [],
    undeleted_runs: [],
    restarted_ladders: 0,
    restored_schedules: 1,
    failed_starts: [],
    ...report,
  };
}

it('names every call that it knows, and how many more there were', () => {
  const calls = [
    { ...call, run_id: 'run_1', step_id: 'h', item: 0 },
    { ...call, run_id: 'run_1', step_id: 'h', item: 2 },
    ...Array.from({ length: 30 }, () => ({ ...call, run_id: null, step_id: null, item: null })),
  ];
  expect(describeFindings(aRecovery({ open_calls: 1_032, interrupted_calls: calls })).slice(3)).toEqual([
    '1032 calls were in flight and may happen twice, with the same Idempotency-Key:',
    '  run_1 h → cut at http://10.0.0.7:8080',
    '  run_1 h [2] → cut at http://10.0.0.7:8080',
    ...Array.from({ length: 30 }, () => '  a call by itself → cut at http://10.0.0.7:8080'),
    '  and 1000 more',
  ]);
});

it('begins with the Temporal that it works on', () => {
  expect(describeFindings(aRecovery())[0]).toBe('Temporal at 10.0.0.31:7233, namespace capstan-2');
});

it('is not whole when a start failed, which it counts and names next to the accepted ones', () => {
  const failed_starts = [
    { id: 'run_1', reason: 'Namespace capstan-2 is not found.' },
    { id: 'sch_1', reason: '14 UNAVAILABLE' },
  ];
  const report = aRecovery({ failed_starts });
  expect(isWhole(report)).toBe(false);
  expect(describeRecovery(report)).toEqual([
    'started again: 3 runs, 0 ladders, 1 schedules; 0 runs continue in Temporal',
    'ended: 2 sessions and 1 login links; 0 keys were revoked again',
    'not started: 2, which Temporal has not taken; servers try again, and so does capstan recover:',
    '  run_1: Namespace capstan-2 is not found.',
    '  sch_1: 14 UNAVAILABLE',
  ]);
});

it('names keys that changed after the backup, or reports that it cannot find them', () => {
  const lost_acts = { made: ['key_a'], revoked: ['key_b', 'key_c'], rotated: [] };
  expect(describeFindings(aRecovery({ lost_acts })).slice(3)).toEqual([
    'keys that were revoked after the backup, and are revoked again:',
    '  key_b',
    '  key_c',
    'keys that were made after the backup, and are gone:',
    '  key_a',
  ]);
  expect(describeFindings(aRecovery({ lost_acts: null })).at(-1)).toContain('--audit FILE');
});

it('is whole when no run was left behind, and names those that were', () => {
  expect(isWhole(aRecovery())).toBe(true);
  expect(describeRecovery(aRecovery())).toEqual([
    'started again: 3 runs, 0 ladders, 1 schedules; 0 runs continue in Temporal',
    'ended: 2 sessions and 1 login links; 0 keys were revoked again',
  ]);
  const runs = Array.from({ length: 22 }, (_, n) => `run_${n}`);
  for (const left of [aRecovery({ ended_in_temporal: runs }), aRecovery({ undeleted_runs: runs })]) {
    expect(isWhole(left)).toBe(false);
    const lines = describeRecovery(left);
    expect(lines[2]).toMatch(/^22 runs /);
    expect(lines.slice(4)).toEqual([...runs.slice(0, 20).map((id) => `  ${id}`), '  and 2 more']);
  }
});

it('explains why search attributes are not registered, and lists the work that was done anyway', () => {
  expect(describeRecovery(aRecovery({ search_attributes_fault: 'not with this key' }))).toEqual([
    'search attributes could not be registered: not with this key',
    'started again: 3 runs, 0 ladders, 1 schedules; 0 runs continue in Temporal',
    'ended: 2 sessions and 1 login links; 0 keys were revoked again',
  ]);
});
