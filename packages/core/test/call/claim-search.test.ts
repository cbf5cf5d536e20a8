import { describe, expect, it } from 'vitest';
import { ClaimSearch, seedOf } from '../../src/call/claim-search.ts';
import { createCostOfInput } from '../../src/money/cost-expressions.ts';
import type { Shortage } from '../../src/money/reservation.ts';
import { createKeyOfInput } from '../../src/residency/affinity-key.ts';
import type { InstanceSnapshot } from '../../src/routing/types.ts';
import { anInstance, aPaid, aRequest, now } from '../routing/a-snapshot.ts';

function aSearch(tried: readonly string[] = [], seed = 7): ClaimSearch {
  const { capability, versionRange, tags, priority, ceilingUsd, timeoutMs } = aRequest();
  const route = { capability, versionRange, tags, priority, ceilingUsd, timeoutMs };
  return new ClaimSearch({ seed, route, tried });
}

function chooseFrom(search: ClaimSearch, ...instances: readonly InstanceSnapshot[]) {
  const fleet = { of: () => ({ instances, priorMs: 10_000 }), nowMs: () => now };
  const { request, choice } = search.choose(fleet, { waiting: 0 });
  const verdicts = choice.excluded.map(({ instance, verdict }) => [instance.instance_id, verdict]);
  return {
    request,
    best: choice.best?.instance.instance_id ?? null,
    verdicts: Object.fromEntries(verdicts),
  };
}

const one = anInstance('one');
const other = anInstance('other', { state: 'suspect' });

describe('the seed of a key', () => {
  it.each([
    ['', 0],
    ['a', 97],
    ['ab', 3_105],
    ['run_1.step.0.0', -515_431_647],
  ])('%j has %d', (key, seed) => {
    expect(seedOf(key)).toBe(seed);
  });

  it('is a whole number of 32 bits, however long the key is', () => {
    const seed = seedOf('x'.repeat(1_000));
    expect(seed).toBe(seed | 0);
  });
});

describe('a search', () => {
  it('asks for all that its route asks for', () => {
    const { capability, priority, timeoutMs } = aRequest();
    const asked = {
      capability,
      priority,
      timeoutMs,
      versionRange: '^1',
      tags: ['gpu'],
      mayReceive: () => true,
    };
    const route = { ...asked, ceilingUsd: 2, runCeilingUsd: 3 };
    const search = new ClaimSearch({ seed: 7, route, tried: [] });
    expect(chooseFrom(search, one).request).toMatchObject(route);
  });

  it('has its seed decide between equals', () => {
    const seeds = Array.from({ length: 20 }, (_, seed) => seed);
    const chosen = seeds.map((seed) => chooseFrom(aSearch([], seed), one, anInstance('another')).best);
    expect(new Set(chosen)).toEqual(new Set(['one', 'another']));
  });
});

describe('the key of what a call needs loaded', () => {
  const declares = (id: string, affinity: string) => anInstance(id, { affinity });
  const keyless = anInstance('keyless');
  const input = { model: 'sdxl', voice: 'ada', none: null };

  /** @returns the key of the call, and that on each instance that has one */
  const keysOf = (
    instances: readonly InstanceSnapshot[],
    {
      affinity,
      hasInput = true,
      hasAffinity = true,
      projectId,
    }: { affinity?: string; hasInput?: boolean; hasAffinity?: boolean; projectId?: string },
  ) => {
    const { capability, versionRange, tags, priority, ceilingUsd, timeoutMs } = aRequest();
    const route = { capability, versionRange, tags, priority, ceilingUsd, timeoutMs, affinity };
    const keyOf = hasInput ? createKeyOfInput(input) : null;
    const search = new ClaimSearch({ seed: 7, route, tried: [], keyOf, ...(projectId && { projectId }) });
    const fleet = { instances, priorMs: 10_000, hasAffinity };
    const { residency } = search.choose({ of: () => fleet, nowMs: () => now }, { waiting: 0 }).request;
    const byInstance = residency && Object.fromEntries([...residency].map(([id, { key }]) => [id, key]));
    return [search.keyIn(fleet), byInstance];
  };

  it('is a hash on instances of other projects, where the step gives it: other projects read none of it', () => {
    const ofProject = (id: string, owner_project: string) =>
      anInstance(id, { owner_project, affinity: '{{ input.voice }}' });
    const fleet = [ofProject('own', 'prj_b'), ofProject('shared', 'prj_a')];
    const asked = { affinity: '{{ input.model }}' };
    const [inLine, byInstance] = keysOf(fleet, { ...asked, projectId: 'prj_b' });
    const hash = expect.stringMatching(/^#[0-9a-f]{32}$/);
    expect(byInstance).toEqual({ own: 'sdxl', shared: hash });
    const [ofOthers, byOthers] = keysOf(fleet, { ...asked, projectId: 'prj_c' });
    expect(byOthers).toEqual({ own: hash, shared: hash });
    expect(ofOthers).not.toEqual(inLine); // they wait apart
    expect(byOthers).not.toEqual(expect.objectContaining({ shared: Object(byInstance).shared }));
    expect(keysOf(fleet, { projectId: 'prj_b' })).toEqual(['ada', { own: 'ada', shared: 'ada' }]);
  });

  const two = [keyless, declares('a', '{{ input.none }}'), declares('b', '{{ input.voice }}')];
  it.each<[string, ...Parameters<typeof keysOf>, expected: unknown]>([
    [
      'is that of the step, on every instance',
      two,
      { affinity: '{{ input.model }}' },
      ['sdxl', { keyless: 'sdxl', a: 'sdxl', b: 'sdxl' }],
    ],
    [
      'is that of the step, where no instance declares one',
      [keyless],
      { affinity: '{{ input.model }}', hasAffinity: false },
      ['sdxl', { keyless: 'sdxl' }],
    ],
    ['is that of each instance', two, {}, ['ada', { b: 'ada' }]],
    ['is none where no instance declares one', two, { hasAffinity: false }, [null, undefined]],
    ['is none where none of them gives one', two.slice(0, 2), {}, [null, undefined]],
    [
      'is none where the input is unknown',
      two,
      { affinity: '{{ input.model }}', hasInput: false },
      [null, undefined],
    ],
  ])('%s', (_, instances, asked, expected) => {
    expect(keysOf(instances, asked)).toEqual(expected);
  });
});

describe('what was learnt of an instance', () => {
  it('nothing: the best one is chosen', () => {
    expect(chooseFrom(aSearch(), one, other)).toMatchObject({ best: 'one', verdicts: {} });
  });

  it('an instance that has just failed the call is not asked again', () => {
    expect(chooseFrom(aSearch(['one']), one, other)).toMatchObject({
      best: 'other',
      verdicts: { one: 'already_tried' },
    });
  });

  it('a slot that another router took is out until slots may have become free', () => {
    const search = aSearch();
    search.noteLost('one');
    expect(chooseFrom(search, one, other)).toMatchObject({ best: 'other', verdicts: { one: 'lost_claim' } });
    search.forgetMoment();
    expect(chooseFrom(search, one, other)).toMatchObject({ best: 'one', verdicts: {} });
  });

  it('an instance without a known identity stays out', () => {
    const search = aSearch();
    search.noteDown('one');
    search.forgetMoment();
    expect(chooseFrom(search, one, other)).toMatchObject({ best: 'other', verdicts: { one: 'down' } });
  });

  it('an instance that refuses the input stays out, and the search keeps the refusal', () => {
    const search = aSearch();
    search.noteRefusal('one', [{ pointer: '/a', message: 'is missing' }]);
    search.forgetMoment();
    expect(chooseFrom(search, one, other)).toMatchObject({
      best: 'other',
      verdicts: { one: 'input_invalid' },
    });
    expect(search.refusals).toEqual([{ pointer: '/a', message: 'is missing' }]);
  });

  it('an instance that is busy after all comes behind an idle one, for now', () => {
    const idle = anInstance('zz');
    const search = aSearch();
    search.noteHeld('one', 1);
    expect(chooseFrom(search, one, idle).best).toBe('zz');
    expect(chooseFrom(search, one).request.busy).toEqual(new Map([['one', 1]]));
    search.forgetMoment();
    expect(chooseFrom(search, one).request.busy).toEqual(new Map());
  });

  it('an instance that failed earlier attempts comes last after a pause, and not at all without one', () => {
    const failures = new Map([['one', 2]]);
    const rested = aSearch();
    rested.noteFailures(failures);
    expect(chooseFrom(rested, one, other)).toMatchObject({ best: 'other', verdicts: {} });
    expect(chooseFrom(rested, one).best).toBe('one');
    expect(chooseFrom(rested, one).request.failedBefore).toEqual(failures);
    const hasty = aSearch(['third']);
    hasty.noteFailures(failures);
    expect(chooseFrom(hasty, one)).toMatchObject({ best: null, verdicts: { one: 'already_tried' } });
  });

  it('is looked at once', () => {
    const search = aSearch();
    expect([search.noteVetting('one'), search.noteVetting('one'), search.noteVetting('two')]).toEqual([
      true,
      false,
      true,
    ]);
  });
});

describe('a shortage', () => {
  const usd = 1_000_000_000n;
  const shortage: Shortage = {
    scope: 'project',
    runId: null,
    resetsAt: null,
    limit: 5n * usd,
    spent: 3n * usd,
    reserved: 1n * usd,
  };

  it('rules out what the budget has no room for', () => {
    const search = aSearch();
    expect(search.shortage).toBeNull();
    search.noteShortage(shortage);
    expect(search.shortage).toBe(shortage);
    expect(chooseFrom(search, aPaid('dear', 1.1), aPaid('cheap', 1))).toMatchObject({
      best: 'cheap',
      verdicts: { dear: 'over_budget' },
      request: { headroomUsd: 1, hidesHeadroom: false },
    });
  });

  it('of the day of all projects hides its figure', () => {
    const search = aSearch();
    search.noteShortage({ ...shortage, scope: 'global' });
    expect(chooseFrom(search, one).request).toMatchObject({ headroomUsd: 1, hidesHeadroom: true });
  });
});

describe('a choice that may be claimed', () => {
  const priced = aPaid('priced', 1, {
    worst_case: '{{ input.n }}',
    protocols: ['openai.chat'],
    overran: { prj_1: [now, now - 1, now - 2] },
  });
  const fleet = {
    of: () => ({ instances: [priced], priorMs: 10_000, declaring: [priced] }),
    nowMs: () => now,
  };
  const worstOf = (more: object) => {
    const route = aRequest();
    const search = new ClaimSearch({
      seed: 1,
      route,
      tried: [],
      costOf: createCostOfInput({ n: 0.1 }),
      ...more,
    });
    return search.choose(fleet, { waiting: 0 }).request.bounds?.get('priced')?.worstUsd;
  };

  it('is priced for the project that pays, and for the form of the call', () => {
    expect([worstOf({}), worstOf({ projectId: 'prj_2' }), worstOf({ projectId: 'prj_1' })]).toEqual([
      0.1,
      0.1,
      null,
    ]);
    const native = { protocol: 'openai.chat', costOf: createCostOfInput({ n: 0.2 }) };
    expect(worstOf({ native })).toBe(0.2);
  });

  it('names the instance, and learns the wrong answers of earlier attempts', () => {
    const search = aSearch();
    const chosen = search.next(
      { of: () => ({ instances: [one], priorMs: 1 }), nowMs: () => now },
      { waiting: 0 },
    );
    if (chosen.kind !== 'chosen') throw new RangeError(chosen.kind);
    expect(chosen.instance).toEqual(one);
    const wrong = { count: 2, fault: null };
    search.learn(chosen, { kind: 'failed_before', failures: new Map([['one', 2]]), wrong });
    expect(search.wrong).toBe(wrong);
  });
});

describe('a half-open instance', () => {
  it('is tried by a call that may, and by no other', () => {
    const halfOpen = anInstance('half', { breaker_until_ms: now - 1 });
    const fleet = { of: () => ({ instances: [halfOpen], priorMs: 10_000 }), nowMs: () => now };
    const asked: unknown[] = [];
    const findDue = (instances: readonly InstanceSnapshot[], nowMs: number): ReadonlySet<string> => {
      asked.push(instances, nowMs);
      return new Set(['half']);
    };
    expect(aSearch().choose(fleet, { findDue, waiting: 3 }).request).toMatchObject({
      trials: new Set(['half']),
      waiting: 3,
    });
    expect(asked).toEqual([[halfOpen], now]);
    expect(aSearch().choose(fleet, { waiting: 0 }).request.trials).toEqual(new Set());
  });
});
