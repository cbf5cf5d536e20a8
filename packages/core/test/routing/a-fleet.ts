import fc from 'fast-check';
import type { InstanceSnapshot, RouteRequest } from '../../src/routing/types.ts';
import { anInstance, aRequest, now } from './a-snapshot.ts';

/** Few distinct prices and durations close to each other, so that ties within 1 % are common. */
const anySnapshot: fc.Arbitrary<Partial<InstanceSnapshot>> = fc
  .record({
    cost: fc.constantFrom(
      { cost_type: 'free', rate_usd: 0 } as const,
      { cost_type: 'per_call', rate_usd: 0.1 } as const,
      { cost_type: 'per_second', rate_usd: 0.01 } as const,
    ),
    tags: fc.constantFrom([], ['gpu'], ['gpu', 'eu']),
    protocols: fc.constantFrom(null, null, ['openai.chat'], ['openai.chat', 'anthropic.messages']),
    is_local: fc.boolean(),
    max_concurrency: fc.integer({ min: 1, max: 3 }),
    state: fc.constantFrom('up', 'up', 'up', 'up', 'suspect', 'down', 'quarantined', 'deregistered'),
    version: fc.constantFrom('1.0.0', '1.2.0', '2.0.0'),
    held: fc.nat(3),
    reported_extra: fc.nat(1),
    duration_ms: fc.option(fc.integer({ min: 980, max: 1_020 })),
    deviation_ms: fc.option(fc.nat(20)),
    failure_count: fc.constantFrom(0, 0, 0, 0.1),
    shared: fc.constantFrom(
      {},
      { host: null, host_calls: null, host_room: null },
      { host: 'gpu-1', host_calls: 2, host_room: 0 },
      { host: 'gpu-1', host_calls: 2, host_room: 1 },
    ),
    breaker_until_ms: fc.constantFrom(null, null, null, null, now - 1, now, now + 1),
  })
  .map(({ cost, shared, ...rest }) => ({ ...cost, ...shared, ...rest }));

export const anyFleet: fc.Arbitrary<InstanceSnapshot[]> = fc
  .array(anySnapshot, { maxLength: 60, size: 'max' })
  .map((fleet) => fleet.map((instance, at) => anInstance(`ins_${at}`, instance)));

/** All possible, alike but for durations within 2 %: more are tied than are shown. */
export const alikeFleet: fc.Arbitrary<InstanceSnapshot[]> = fc
  .array(
    fc.record({
      duration_ms: fc.integer({ min: 1_000, max: 1_020 }),
      held: fc.nat(1),
      protocols: fc.constantFrom(null, ['openai.chat']),
    }),
    {
      minLength: 30,
      maxLength: 60,
    },
  )
  .map((fleet) => fleet.map((one, at) => anInstance(`ins_${at}`, { ...one, is_local: false })));

export const anyRequest: fc.Arbitrary<RouteRequest> = fc
  .record({
    priority: fc.constantFrom('interactive', 'standard', 'batch'),
    tags: fc.constantFrom([], [], ['gpu']),
    versionRange: fc.constantFrom(null, null, '^1.0.0'),
    ceilingUsd: fc.constantFrom(null, null, 0.05, 0.1),
    headroomUsd: fc.constantFrom(null, null, 0, 0.1, 3),
    priorMs: fc.constantFrom(1_000, 30_000),
    ruledOut: fc.constantFrom(
      new Map(),
      new Map([
        ['ins_0', 'already_tried'],
        ['ins_3', 'lost_claim'],
      ] as const),
    ),
    trials: fc.constantFrom(new Set<string>(), new Set(['ins_5']), new Set(['ins_2', 'ins_5'])),
    protocol: fc.constantFrom(
      null,
      undefined,
      { name: 'openai.chat', isRequired: false },
      { name: 'anthropic.messages', isRequired: true },
    ),
    waiting: fc.constantFrom(0, 0, 1, 7),
    failedBefore: fc.constantFrom(
      new Map<string, number>(),
      new Map([
        ['ins_1', 0],
        ['ins_4', 1],
        ['ins_6', 2],
      ]),
    ),
    busy: fc.constantFrom(
      new Map<string, number>(),
      new Map([
        ['ins_1', 1],
        ['ins_2', 8],
      ]),
    ),
  })
  .map((request) => aRequest(request));
