import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import type { JsonObject } from '../../src/contracts/primitives.ts';
import { choose } from '../../src/routing/choose.ts';
import { readInputs, replayChoice, showInputs, showInputsText, toInputs } from '../../src/routing/replay.ts';
import type { InstanceSnapshot, Residency, RouteRequest } from '../../src/routing/types.ts';
import { alikeFleet, anyFleet, anyRequest } from './a-fleet.ts';
import { anInstance, aPaid, aRequest } from './a-snapshot.ts';

function store(fleet: readonly InstanceSnapshot[], request: RouteRequest, seed: number): JsonObject {
  return JSON.parse(JSON.stringify(toInputs(choose(fleet, request, seed), request, seed)));
}

interface StoredRows {
  readonly keys: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
}

describe('replayChoice', () => {
  it('makes the same choice from the stored inputs as from all instances', () => {
    const property = (fleet: InstanceSnapshot[], request: RouteRequest, seed: number): void => {
      const { best } = choose(fleet, request, seed);
      expect(replayChoice(store(fleet, request, seed))).toBe(best?.instance.endpoint ?? null);
    };
    fc.assert(fc.property(anyFleet, anyRequest, fc.integer(), property), { numRuns: runs(100) });
    fc.assert(fc.property(alikeFleet, anyRequest, fc.integer(), property), { numRuns: runs(100) });
  });

  it('repeats a choice in which the cost depends on the input', () => {
    const usd = fc.option(fc.double({ min: 1e-9, max: 1, noNaN: true }));
    const bound = fc.record({ worstUsd: usd, expectedUsd: usd });
    fc.assert(
      fc.property(
        anyFleet,
        anyRequest,
        fc.array(bound, { minLength: 8 }),
        fc.integer(),
        (fleet, request, all, seed) => {
          const bounds = new Map(
            fleet.flatMap(({ instance_id }, at) => (all[at] ? [[instance_id, all[at]]] : [])),
          );
          const asked = { ...request, ceilingUsd: 0.3, bounds };
          const { best } = choose(fleet, asked, seed);
          expect(replayChoice(store(fleet, asked, seed))).toBe(best?.instance.endpoint ?? null);
        },
      ),
      { numRuns: runs(100) },
    );
  });

  it('knows who would have been better, had it been another request', () => {
    const fleet = [anInstance('free', { held: 1 }), aPaid('paid', 0.05)];
    const inputs = store(fleet, aRequest({ priority: 'interactive' }), 1);
    const asBatch = { ...inputs, request: { ...(inputs.request as JsonObject), priority: 'batch' } };
    expect([replayChoice(inputs), replayChoice(asBatch)]).toEqual([
      'http://10.0.0.1/paid',
      'http://10.0.0.1/free',
    ]);
  });
});

it('the time that is left is repeated, and is missing where there is none', () => {
  const slow = anInstance('slow', { duration_ms: 10_000, success_count: 9 });
  const inputs = store([slow], aRequest({ leftMs: 9_000 }), 1);
  expect((inputs.request as JsonObject).left_ms).toBe(9_000);
  expect(replayChoice(inputs)).toBeNull();
  expect(store([slow], aRequest({ leftMs: null }), 1).request).not.toHaveProperty('left_ms');
});

describe('what a decision was made from', () => {
  const found: Residency = {
    key: 'k'.repeat(128),
    isResident: false,
    isListed: false,
    warmMs: 1_000.5,
    loadMs: 9_000,
    pace: 1,
    isLearnt: true,
    leftMs: 0,
    usedAtMs: null,
  };
  const full: RouteRequest = aRequest({
    versionRange: '^1',
    tags: ['local'],
    ceilingUsd: 2,
    runCeilingUsd: 3,
    headroomUsd: 1,
    ruledOut: new Map([['a', 'already_tried']]),
    busy: new Map([['b', 1]]),
    trials: new Set(['c']),
    waiting: 3,
    failedBefore: new Map([['d', 2]]),
    protocol: { name: 'openai.chat', isRequired: false },
    bounds: new Map([['free', { worstUsd: 0.5, expectedUsd: null }]]),
    residency: new Map([['free', found]]),
    patienceMs: 2_000,
  });

  it('is read as it was written, with what was learnt of the instances', () => {
    const { request, seed } = readInputs(store([anInstance('free')], full, 7));
    expect({ request, seed }).toEqual({ request: full, seed: 7 });
  });

  it('holds no costs by the input where there are none', () => {
    const stored = store([anInstance('free')], aRequest(), 7);
    expect(stored.request).not.toHaveProperty('bounds');
    expect(readInputs(stored).request.bounds).toBeUndefined();
  });

  it('holds each key once, and reads it for its instances', () => {
    const fleet = ['a', 'b', 'c', 'd'].map((id) => anInstance(id));
    const residency = new Map<string, Residency>([
      ['a', found],
      ['b', { ...found, isResident: true, usedAtMs: 5 }],
      ['c', { ...found, key: 'other' }],
    ]);
    const stored = store(fleet, aRequest({ residency }), 7);
    expect(JSON.stringify(stored).split(found.key)).toHaveLength(2);
    expect(readInputs(stored).request.residency).toEqual(residency);
  });

  it('holds of an instance whatever is chosen by', () => {
    const instance = aPaid('paid', 0.05, {
      version: '2.0.0',
      tags: ['gpu'],
      is_local: true,
      held: 1,
      max_concurrency: 3,
      reported_extra: 2,
      duration_ms: 7,
      deviation_ms: 3,
      success_count: 5,
      failure_count: 4,
      breaker_until_ms: 9,
      protocols: ['openai.chat'],
      price_source: 'by hand',
      host: 'gpu-1',
      host_calls: 2,
      host_room: 1,
    });
    const { name: _, spec_digest: __, settle: ___, mean_cost_usd: ____, ...read } = instance;
    expect(readInputs(store([instance], aRequest(), 7)).instances).toEqual([read]);
  });

  it('is empty where nothing was learnt', () => {
    expect(readInputs(store([], aRequest(), 7)).request).toMatchObject({
      ruledOut: new Map(),
      busy: new Map(),
      trials: new Set(),
      waiting: 0,
      failedBefore: new Map(),
    });
  });

  it('is shown as the text that is stored, and more behind it', () => {
    const own = JSON.stringify(store([anInstance('free')], full, 7), null, 1);
    expect(showInputsText(own).startsWith(own.slice(0, -1))).toBe(true);
  });

  it.each([{}, { hidesHeadroom: true }])('is shown as text like as an object: %j', (more) => {
    const stored = store([anInstance('free')], { ...full, ...more }, 7);
    expect(JSON.parse(showInputsText(JSON.stringify(stored)))).toEqual(showInputs(stored));
  });

  it('is shown with the names of its columns, but for what the day of all projects leaves', () => {
    const own = store([anInstance('free')], full, 7);
    const { columns, residency_columns, ...shown } = showInputs(own);
    expect(shown).toEqual(own);
    const [row = []] = own.instances as unknown[][];
    const named = Object.fromEntries((columns as string[]).map((name, at) => [name, row[at]]));
    expect([named]).toEqual(readInputs(own).instances);
    const { keys, rows } = (own.request as JsonObject).residency as unknown as StoredRows;
    const fields = (residency_columns as string[]).map((name, at) => [name, rows[0]?.[at]]);
    expect({ ...Object.fromEntries(fields), key: keys[0] }).toEqual(found);
    const shared = store([anInstance('free')], { ...full, hidesHeadroom: true }, 7);
    const { request, ...others } = shared;
    expect(request).toMatchObject({ headroom_usd: 1, hides_headroom: true });
    expect(showInputs(shared)).toEqual({
      request: { ...(request as object), headroom_usd: null },
      ...others,
      columns,
      residency_columns,
    });
  });
});
