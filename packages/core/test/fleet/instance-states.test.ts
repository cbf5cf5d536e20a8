import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StoredState } from '../../src/contracts/capability.ts';
import {
  afterRegistration,
  type InstanceEvent,
  type InstanceFacts,
  type InstanceTransition,
  isRoutable as mayTakeCalls,
  nextState,
  routedState,
} from '../../src/fleet/instance-states.ts';

function facts(changes: Partial<InstanceFacts> = {}): InstanceFacts {
  return {
    state: 'up',
    reason: null,
    failed_probes: 0,
    isVetted: true,
    isSilent: false,
    isEvicted: false,
    holdsCalls: false,
    ...changes,
  };
}

const refused: InstanceEvent = { kind: 'probe_failed', failure: 'refused', detail: 'refused' };
const unanswered: InstanceEvent = { kind: 'probe_failed', failure: 'unanswered', detail: 'silent' };
const unconnected: InstanceEvent = { kind: 'probe_failed', failure: 'unconnected', detail: 'no route' };
const mismatch: InstanceEvent = { kind: 'probe_mismatch', detail: 'another' };

const events: Record<string, InstanceEvent> = {
  registered: { kind: 'registered' },
  heartbeat: { kind: 'heartbeat' },
  silent: { kind: 'silent' },
  refused_connection: { kind: 'refused_connection' },
  probe_ok: { kind: 'probe_ok' },
  probe_failed: refused,
  probe_mismatch: mismatch,
  deregistered: { kind: 'deregistered' },
};

const same = null;
const table: Record<StoredState, Record<string, StoredState | null>> = {
  up: {
    registered: 'up',
    heartbeat: 'up',
    silent: 'suspect',
    refused_connection: 'suspect',
    probe_ok: 'up',
    probe_failed: 'suspect',
    probe_mismatch: 'quarantined',
    deregistered: 'deregistered',
  },
  suspect: {
    registered: 'up',
    heartbeat: 'up',
    silent: same,
    refused_connection: same,
    probe_ok: 'up',
    probe_failed: 'suspect',
    probe_mismatch: 'quarantined',
    deregistered: 'deregistered',
  },
  down: {
    registered: 'up',
    heartbeat: 'up',
    silent: same,
    refused_connection: same,
    probe_ok: 'up',
    probe_failed: 'down',
    probe_mismatch: 'quarantined',
    deregistered: 'deregistered',
  },
  quarantined: {
    registered: 'up',
    heartbeat: same,
    silent: same,
    refused_connection: same,
    probe_ok: 'up',
    probe_failed: 'quarantined',
    probe_mismatch: 'quarantined',
    deregistered: 'deregistered',
  },
  deregistered: {
    registered: 'up',
    heartbeat: same,
    silent: same,
    refused_connection: same,
    probe_ok: same,
    probe_failed: same,
    probe_mismatch: same,
    deregistered: same,
  },
};

function follow(start: InstanceFacts, happening: readonly InstanceEvent[]): InstanceFacts {
  let now = start;
  for (const event of happening) now = { ...now, ...nextState(now, event) };
  return now;
}

describe('nextState', () => {
  for (const [state, row] of Object.entries(table)) {
    for (const [event, expected] of Object.entries(row)) {
      it(`${state} + ${event} → ${expected ?? 'unchanged'}`, () => {
        const start = facts({ state: state as StoredState, failed_probes: state === 'down' ? 3 : 0 });
        expect(nextState(start, events[event] as InstanceEvent)?.state ?? null).toBe(expected);
      });
    }
  }

  it('takes a suspect instance down after three failed probes 1 s apart, then probes after 15, 30, 60, 60 s', () => {
    const pauses: InstanceTransition[] = [];
    let now = facts({ state: 'suspect' });
    for (let round = 0; round < 6; round++) {
      pauses.push(nextState(now, refused) as InstanceTransition);
      now = follow(now, [refused]);
    }
    expect(pauses.map(({ state, next_probe_in_ms }) => `${state} ${next_probe_in_ms}`)).toEqual([
      ...['suspect 1000', 'suspect 1000', 'down 15000', 'down 30000', 'down 60000', 'down 60000'],
    ]);
  });

  it('stops probing an evicted instance, which a heartbeat, a registration or a late answer revives', () => {
    const evicted = facts({ state: 'down', failed_probes: 17, isEvicted: true });
    expect(nextState(evicted, refused)).toMatchObject({ state: 'down', next_probe_in_ms: null });
    expect(nextState(evicted, unanswered)).toMatchObject({ state: 'down', next_probe_in_ms: null });
    for (const kind of ['heartbeat', 'registered', 'probe_ok'] as const) {
      expect(nextState(evicted, { kind })?.state).toBe('up');
    }
  });

  it('probes suspected instances at once, and those that send heartbeats before their spec was read', () => {
    expect(nextState(facts(), { kind: 'silent' })?.next_probe_in_ms).toBe(0);
    expect(nextState(facts(), { kind: 'refused_connection' })?.next_probe_in_ms).toBe(0);
    const unread = facts({ state: 'down', isVetted: false });
    expect(nextState(unread, { kind: 'heartbeat' })?.next_probe_in_ms).toBe(0);
  });

  it('forgets failures and reason when an instance is up again', () => {
    const failing = facts({ state: 'down', failed_probes: 5, reason: 'refused' });
    const well = { state: 'up', reason: null, failed_probes: 0, next_probe_in_ms: null };
    expect(nextState(failing, { kind: 'heartbeat' })).toEqual(well);
    expect(nextState(failing, { kind: 'probe_ok' })).toEqual(well);
    expect(nextState(failing, { kind: 'registered' })).toEqual(afterRegistration);
  });

  it('keeps probing an instance that answers but sends no heartbeats', () => {
    const silent = facts({ state: 'suspect', isSilent: true });
    expect(nextState(silent, { kind: 'probe_ok' })).toMatchObject({ state: 'up', next_probe_in_ms: 75_000 });
  });

  it('takes silence of an instance that works for us as no evidence, but an unanswered connect as evidence', () => {
    const busy = facts({ state: 'suspect', failed_probes: 2, reason: 'lost', holdsCalls: true });
    expect(nextState(busy, unanswered)).toMatchObject({ state: 'suspect', failed_probes: 2, reason: 'lost' });
    expect(nextState(busy, unconnected)).toMatchObject({ state: 'down', failed_probes: 3 });
    expect(nextState(busy, refused)).toMatchObject({ state: 'down', failed_probes: 3 });
    expect(nextState({ ...busy, holdsCalls: false }, unanswered)).toMatchObject({ state: 'down' });
  });
});

const anyFacts = fc.record({
  state: fc.constantFrom<StoredState>('up', 'suspect', 'down', 'quarantined', 'deregistered'),
  reason: fc.constantFrom(null, 'something'),
  failed_probes: fc.nat(10),
  isVetted: fc.boolean(),
  isSilent: fc.boolean(),
  isEvicted: fc.boolean(),
  holdsCalls: fc.boolean(),
});
function isRoutable({ state }: InstanceFacts): boolean {
  return state === 'up' || state === 'suspect';
}

describe('whatever happens', () => {
  it('silence and callers’ reports alone never make an instance unroutable', () => {
    const quiet = fc.constantFrom<InstanceEvent>({ kind: 'silent' }, { kind: 'refused_connection' });
    fc.assert(
      fc.property(anyFacts, fc.array(quiet), (start, happening) => {
        expect(isRoutable(follow(start, happening))).toBe(isRoutable(start));
      }),
    );
  });

  it('an instance that is not up is probed again, unless it deregistered', () => {
    const any = fc.constantFrom(...Object.values(events), unanswered, unconnected);
    fc.assert(
      fc.property(fc.array(any, { minLength: 1 }), (happening) => {
        let next: InstanceTransition = afterRegistration;
        for (const event of happening) next = nextState(facts(next), event) ?? next;
        const wantsProbe = next.next_probe_in_ms !== null;
        if (next.state !== 'up') expect(wantsProbe).toBe(next.state !== 'deregistered');
      }),
    );
  });

  it('only a registration revives a deregistered instance', () => {
    const other = Object.values(events).filter(({ kind }) => kind !== 'registered');
    fc.assert(
      fc.property(anyFacts, fc.array(fc.constantFrom(...other)), (start, happening) => {
        const gone = follow({ ...start, state: 'deregistered' }, happening);
        expect(gone.state).toBe('deregistered');
      }),
    );
  });
});

describe('the state that the router acts on', () => {
  it.each([
    ['up', false, false, 'up', true],
    ['up', false, true, 'warming', true],
    ['up', true, true, 'draining', false],
    ['suspect', false, true, 'suspect', true],
    ['suspect', true, false, 'draining', false],
    ['down', true, true, 'down', false],
    ['quarantined', true, true, 'quarantined', false],
    ['deregistered', true, true, 'deregistered', false],
  ] as const)('%s, drained %s, warming %s: %s', (state, isDrained, isWarming, routed, takesCalls) => {
    const seen = routedState(state, { isDrained, isWarming });
    expect([seen, mayTakeCalls(seen)]).toEqual([routed, takesCalls]);
  });
});
