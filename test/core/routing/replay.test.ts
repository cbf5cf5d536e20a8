import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/contracts/primitives.ts';
import { choose } from '../../../src/core/routing/choose.ts';
import { replayChoice, toInputs } from '../../../src/core/routing/replay.ts';
import type { InstanceSnapshot, RouteRequest } from '../../../src/core/routing/types.ts';
import { runs } from '../../support/runs.ts';
import { alikeFleet, anyFleet, anyRequest } from './a-fleet.ts';
import { anInstance, aPaid, aRequest } from './a-snapshot.ts';

function store(fleet: readonly InstanceSnapshot[], request: RouteRequest, seed: number): JsonObject {
  return JSON.parse(JSON.stringify(toInputs(choose(fleet, request, seed), request, seed)));
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
