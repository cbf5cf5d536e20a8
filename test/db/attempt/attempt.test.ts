import { describe, expect, it } from 'vitest';
import {
  type AttemptEnd,
  type Claim,
  listStepAttempts,
  loseExpiredAttempts,
  renewLeases,
  settleAndClaim,
} from '../../../src/db/attempt/attempt.ts';
import { listEvents } from '../../../src/db/run/event.ts';
import { listStepResults } from '../../../src/db/step/step.ts';
import { useDatabase } from '../../support/database.ts';
import {
  aClaim,
  anEnd,
  anInstance,
  aProject,
  aRun,
  claimAttempt,
  type StoredRun,
  settleAttempt,
} from '../../support/factories.ts';

const { db } = useDatabase(8);

const claimed = { outcome: 'claimed', number: 1, counted: 0, output: null };
function refused(outcome: string) {
  return { outcome, number: 0, counted: 0, output: null };
}
const failure = { code: 'capability_failed', message: 'HTTP 500: no memory' };
const failed: Partial<AttemptEnd> = {
  counted: true,
  error: failure,
  step_state: 'retrying',
  output: undefined,
  event_data: { error: failure },
};

function ledgerOf(attempt_id: string) {
  return db('ledger_entry')
    .where({ attempt_id })
    .orderBy('entry_id')
    .select('kind', 'amount_nano', 'certainty', 'capability', 'project_id');
}

async function eventsOf({ run_id }: StoredRun): Promise<string[]> {
  const rows = await db('event')
    .where({ run_id })
    .orderBy(['xid', 'id'])
    .select('type', 'step_id', 'attempt');
  return rows.map(({ type, step_id, attempt }) =>
    [type, step_id, attempt].filter((x) => x !== null).join(' '),
  );
}

async function stepOf({ run_id }: StoredRun, step_id = 'a') {
  const columns = ['state', 'revision', 'output', 'error', 'started_at', 'finished_at'];
  const row = await db('step').where({ run_id, step_id }).first(columns);
  return row && { ...row, started_at: row.started_at !== null, finished_at: row.finished_at !== null };
}

function attemptOf(attempt_id: string) {
  return db('attempt')
    .where({ attempt_id })
    .first('state', 'ambiguity', 'counted', 'settled_nano', 'certainty', 'error');
}

function lostAttempt(settled_nano: string) {
  return {
    state: 'lost',
    ambiguity: 'ambiguous',
    counted: true,
    settled_nano,
    certainty: 'estimated',
    error: { code: 'contact_lost', message: 'the process that made the call went away' },
  };
}

describe('a claim and its settlement', () => {
  it('run the step, log it, and leave the ledger alone when the instance is free', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db)];
    const claim = aClaim(run, instance, { step: { run_id: run.run_id, step_id: 'a', item: 0, revision: 2 } });
    expect(await claimAttempt(db, claim)).toEqual(claimed);
    const running = { state: 'running', revision: 2, output: null, error: null };
    expect(await stepOf(run)).toEqual({ ...running, started_at: true, finished_at: false });
    expect(await settleAttempt(db, anEnd(claim))).toBe(true);
    expect(await stepOf(run)).toEqual({
      ...running,
      state: 'succeeded',
      output: { path: 'media://out.mp4' },
      started_at: true,
      finished_at: true,
    });
    expect(await eventsOf(run)).toEqual([
      'run.queued',
      'step.started a',
      'step.routed a 1',
      'step.succeeded a 1',
    ]);
    expect(await ledgerOf(claim.attempt_id)).toEqual([]);
    expect(await listStepAttempts(db, { run_id: run.run_id, step_id: 'a', item: 0 })).toMatchObject([
      {
        attempt_id: claim.attempt_id,
        number: 1,
        endpoint: instance.endpoint,
        state: 'settled',
        ambiguity: 'answered',
        duration_ms: 12.5,
        reserved_nano: '0',
        settled_nano: '0',
        error: null,
        decision: claim.decision,
      },
    ]);
  });

  it('book reservation and settlement when the instance has a price', async () => {
    const run = await aRun(db);
    const instance = await anInstance(db, { cost_type: 'per_second', rate_usd: '0.000000000001' });
    const claim = aClaim(run, instance, { reserved_nano: 9_007_199_254_740_993n });
    await claimAttempt(db, claim);
    await settleAttempt(db, anEnd(claim, { settled_nano: 9_007_199_254_740_992n }));
    const entry = { certainty: 'exact', capability: 'concat', project_id: run.project_id };
    expect(await ledgerOf(claim.attempt_id)).toEqual([
      { ...entry, kind: 'reserve', amount_nano: '9007199254740993' },
      { ...entry, kind: 'settle', amount_nano: '9007199254740992' },
    ]);
    const snapshot = await db('attempt')
      .where({ attempt_id: claim.attempt_id })
      .first('cost_type', 'rate_usd');
    expect(snapshot).toEqual({ cost_type: 'per_second', rate_usd: '0.000000000001' });
  });

  it('R6: receive the instances that have failed the key, also after their process went away', async () => {
    const run = await aRun(db);
    const [one, other, idle] = [await anInstance(db), await anInstance(db), await anInstance(db)];
    const first = aClaim(run, one, { known_failures: [] });
    await claimAttempt(db, first);
    await settleAttempt(db, anEnd(first, { ...failed, has_failed: true }));
    await claimAttempt(db, aClaim(run, other, { known_failures: [one.instance_id] })); // its process is killed
    const counted = { [one.instance_id]: 1, [other.instance_id]: 1 };
    const news = { ...refused('failed_before'), output: { counted, errors: [failure] } };
    for (const instance of [one, other, idle]) {
      expect(await claimAttempt(db, aClaim(run, instance, { known_failures: [one.instance_id] }))).toEqual(
        news,
      );
    }
    const known_failures = [one.instance_id, other.instance_id];
    const last = aClaim(run, one, { known_failures });
    expect(await claimAttempt(db, last)).toEqual({ ...claimed, number: 3, counted: 2 });
    await settleAttempt(db, anEnd(last));
    expect(await claimAttempt(db, aClaim(run, idle, { known_failures: [] }))).toMatchObject({
      outcome: 'answered',
    });
  });

  it('R6: learn in each claim of a batch only of its own key, and give its money back', async () => {
    const [run, next] = [await aRun(db), await aRun(db)];
    const paid = await anInstance(db, { cost_type: 'per_call', rate_usd: 1, max_concurrency: 3 });
    const first = aClaim(run, paid, { reserved_nano: 5n });
    await claimAttempt(db, first);
    await settleAttempt(db, anEnd(first, { ...failed, has_failed: true }));
    const batch = [
      aClaim(next, paid, { reserved_nano: 5n, known_failures: [] }),
      aClaim(run, paid, { reserved_nano: 5n, known_failures: [], step: null }),
    ];
    const { claims } = await settleAndClaim(db, { ends: [], claims: batch }, true);
    expect(claims.map(({ outcome }) => outcome)).toEqual(['claimed', 'failed_before']);
    const reserved = await db('budget')
      .where({ scope: `project:${run.project_id}` })
      .sum('reserved_nano as sum');
    expect(reserved).toEqual([{ sum: '0' }]);
  });

  it('release the reservation when nothing was sent, and the next attempt succeeds', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db, { cost_type: 'per_call', rate_usd: 1 })];
    const first = aClaim(run, instance, { reserved_nano: 5n });
    await claimAttempt(db, first);
    const release = { state: 'released', ambiguity: 'not_sent', counted: false } as const;
    expect(await settleAttempt(db, anEnd(first, { ...failed, ...release }))).toBe(true);
    expect(
      (await ledgerOf(first.attempt_id)).map(({ kind, amount_nano }) => `${kind} ${amount_nano}`),
    ).toEqual(['reserve 5', 'release 0']);
    expect(await stepOf(run)).toMatchObject({ state: 'retrying', error: failure, finished_at: false });
    const second = aClaim(run, instance);
    expect(await claimAttempt(db, second)).toEqual({ ...claimed, number: 2 });
    await settleAttempt(db, anEnd(second));
    expect(await stepOf(run)).toMatchObject({ state: 'succeeded', error: null, finished_at: true });
    expect(await eventsOf(run)).toEqual([
      ...['run.queued', 'step.started a', 'step.routed a 1', 'step.retrying a 1'],
      ...['step.routed a 2', 'step.succeeded a 2'],
    ]);
  });

  it('count the failures of the key, and cost what all attempts cost', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db, { cost_type: 'per_call', rate_usd: 1 })];
    for (const number of [1, 2, 3]) {
      const claim = aClaim(run, instance, { reserved_nano: 10n });
      expect(await claimAttempt(db, claim)).toEqual({ ...claimed, number, counted: number - 1 });
      await settleAttempt(db, anEnd(claim, { ...failed, settled_nano: 3n }));
    }
    expect(await listStepResults(db, run.run_id, ['a', 'b'])).toEqual([
      { step_id: 'a', state: 'retrying', output: null, error: failure, cost_nano: '9', items: null },
    ]);
  });

  it('work for a direct call, which has no step', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db)];
    const claim = aClaim(run, instance, { step: null, key: `call-${run.run_id}` });
    expect(await claimAttempt(db, claim)).toEqual(claimed);
    expect(await settleAttempt(db, anEnd(claim))).toBe(true);
    expect(await eventsOf(run)).toEqual(['run.queued']);
  });

  it('show an end of unknown delivery as a failed step', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db)];
    const claim = aClaim(run, instance);
    await claimAttempt(db, claim);
    await settleAttempt(db, anEnd(claim, { ...failed, state: 'lost', step_state: 'unknown' }));
    expect(await stepOf(run)).toMatchObject({ state: 'unknown', finished_at: true });
    expect((await eventsOf(run)).at(-1)).toBe('step.failed a 1');
  });
});

describe('a claim is refused', () => {
  it.each(['down', 'quarantined', 'deregistered'] as const)(
    'with gone on an instance that is %s',
    async (state) => {
      const [run, instance] = [await aRun(db), await anInstance(db, { state })];
      expect(await claimAttempt(db, aClaim(run, instance))).toEqual(refused('gone'));
      expect(await claimAttempt(db, aClaim(run, { ...instance, instance_id: 'none' }))).toEqual(
        refused('gone'),
      );
      expect(await stepOf(run)).toBeUndefined();
    },
  );

  it('with gone on a drained instance, by routers that do not know it yet', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db, { drained_by: 'key_1' })];
    expect(await claimAttempt(db, aClaim(run, instance))).toEqual(refused('gone'));
  });

  it('with gone at a price that is another one by now', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db, { cost_type: 'per_call', rate_usd: 1 })];
    for (const before of [{ rate_usd: 2 }, { cost_type: 'per_second' as const }]) {
      expect(await claimAttempt(db, aClaim(run, instance, before))).toEqual(refused('gone'));
    }
    expect(await claimAttempt(db, aClaim(run, instance))).toEqual(claimed);
  });

  it('with gone while the breaker of its instance is open', async () => {
    const breaker_until = new Date(Date.now() + 60_000);
    const [run, instance] = [await aRun(db), await anInstance(db, { breaker_until })];
    expect(await claimAttempt(db, aClaim(run, instance))).toEqual(refused('gone'));
  });

  it('with full while all slots are held, or one when it must be idle', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db, { max_concurrency: 2 })];
    const claim = (step_id: string, must_be_idle: boolean) =>
      claimAttempt(db, aClaim(run, instance, { step_id, must_be_idle }));
    expect(await claim('a', true)).toEqual(claimed);
    expect(await claim('b', true)).toEqual(refused('full'));
    expect(await claim('b', false)).toEqual(claimed);
    expect(await claim('c', false)).toEqual(refused('full'));
  });

  it('with answered and the output when the step has succeeded', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db)];
    const claim = aClaim(run, instance);
    await claimAttempt(db, claim);
    await settleAttempt(db, anEnd(claim));
    const again = { ...refused('answered'), output: { path: 'media://out.mp4' } };
    expect(await claimAttempt(db, aClaim(run, instance))).toEqual(again);
  });

  it.each(['failed', 'unknown', 'cancelled'] as const)(
    'with closed when the step has ended as %s',
    async (state) => {
      const [run, instance] = [await aRun(db), await anInstance(db)];
      const claim = aClaim(run, instance);
      await claimAttempt(db, claim);
      await settleAttempt(db, anEnd(claim, { ...failed, step_state: state }));
      expect(await claimAttempt(db, aClaim(run, instance))).toEqual(refused('closed'));
    },
  );
});

describe('a second claim of a key', () => {
  it.each([0n, 700n])(
    'supersedes the first, whose reservation of %i counts as spent',
    async (reserved_nano) => {
      const [run, instance] = [await aRun(db), await anInstance(db, { cost_type: 'per_call', rate_usd: 1 })];
      const [first, second] = [aClaim(run, instance, { reserved_nano }), aClaim(run, instance)];
      await claimAttempt(db, first);
      expect(await claimAttempt(db, second)).toEqual({ ...claimed, number: 2, counted: 1 });
      const before = [await attemptOf(first.attempt_id), await stepOf(run), await eventsOf(run)];
      expect(before[0]).toEqual(lostAttempt(`${reserved_nano}`));
      expect(await settleAttempt(db, anEnd(first, { settled_nano: 1n, output: { late: true } }))).toBe(false);
      const corrected = reserved_nano === 0n ? {} : { settled_nano: '1', certainty: 'exact' };
      expect([await attemptOf(first.attempt_id), await stepOf(run), await eventsOf(run)]).toEqual([
        { ...before[0], ...corrected },
        ...before.slice(1),
      ]);
      const booked = (await ledgerOf(first.attempt_id)).map(
        ({ kind, amount_nano, certainty }) => `${kind} ${amount_nano} ${certainty}`,
      );
      expect(booked).toEqual(
        reserved_nano === 0n ? [] : ['reserve 700 exact', 'settle 700 estimated', 'adjust -699 exact'],
      );
      expect(await settleAttempt(db, anEnd(second))).toBe(true);
    },
  );
});

describe('a settlement', () => {
  it('happens once, however often it is repeated', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db, { cost_type: 'per_call', rate_usd: 1 })];
    const claim = aClaim(run, instance, { reserved_nano: 5n });
    await claimAttempt(db, claim);
    const ends = [anEnd(claim, { settled_nano: 5n }), anEnd(claim, { settled_nano: 4n })];
    const settled = await Promise.all([...ends, ...ends].map((end) => settleAttempt(db, end)));
    expect(settled.filter((isSettled) => isSettled)).toHaveLength(2);
    expect(settled[0]).toBe(settled[2]);
    expect(await ledgerOf(claim.attempt_id)).toHaveLength(2);
    expect((await eventsOf(run)).filter((event) => event.startsWith('step.succeeded'))).toHaveLength(1);
  });

  it('needs the token', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db)];
    const claim = aClaim(run, instance);
    await claimAttempt(db, claim);
    expect(await settleAttempt(db, anEnd(aClaim(run, instance, { attempt_id: claim.attempt_id })))).toBe(
      false,
    );
    expect(await stepOf(run)).toMatchObject({ state: 'running' });
  });

  it('keeps the text of the output: order of keys, NUL, halves of surrogate pairs, null', async () => {
    const instance = await anInstance(db);
    for (const output of [{ z: 1, a: { y: 'a\u0000b', b: '\ud83d' }, '': 0.1 }, null]) {
      const run = await aRun(db);
      const claim = aClaim(run, instance);
      await claimAttempt(db, claim);
      await settleAttempt(db, anEnd(claim, { output }));
      const again = await claimAttempt(db, aClaim(run, instance));
      const [row] = await listStepResults(db, run.run_id, ['a']);
      expect(['output' in again && again.output, row?.output].map((one) => JSON.stringify(one))).toEqual(
        Array(2).fill(JSON.stringify(output)),
      );
    }
  });

  it('is not lost to an error whose text Postgres cannot hold', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db)];
    const claim = aClaim(run, instance);
    await claimAttempt(db, claim);
    const error = { code: 'input_rejected', message: 'NUL \u0000, half \ud83d, whole 😀, escape \\u0000 \\' };
    const end = anEnd(claim, { ...failed, error, event_data: { error }, step_state: 'failed' });
    expect(await settleAttempt(db, end)).toBe(true);
    const readable = { ...error, message: 'NUL \ufffd, half \ufffd, whole 😀, escape \\u0000 \\' };
    expect(await stepOf(run)).toMatchObject({ state: 'failed', error: readable });
    const events = await listEvents(db, run.run_id, { before: '9223372036854775807', after: 0, limit: 10 });
    expect(events.at(-1)?.data).toEqual({ error: readable });
  });
});

describe('the ledger', () => {
  it('refuses changes and deletions', async () => {
    const [run, instance] = [await aRun(db), await anInstance(db)];
    const claim = aClaim(run, instance, { reserved_nano: 5n });
    await claimAttempt(db, claim);
    const entries = () => db('ledger_entry').where({ attempt_id: claim.attempt_id });
    await expect(entries().update({ amount_nano: 0 })).rejects.toThrow('append-only');
    await expect(entries().del()).rejects.toThrow('append-only');
    expect(await entries()).toHaveLength(1);
  });

  it("books reservation and settlement on the project's day of admission", async () => {
    const instance = await anInstance(db, { max_concurrency: 2 });
    const zones = ['Pacific/Kiritimati', 'Pacific/Pago_Pago'];
    const days = await Promise.all(
      zones.map(async (timezone) => {
        const { project_id } = await aProject(db, { timezone });
        const claim = aClaim(await aRun(db, { project_id }), instance, { reserved_nano: 5n });
        await claimAttempt(db, claim);
        await settleAttempt(db, anEnd(claim, { settled_nano: 5n }));
        const rows = await db('ledger_entry')
          .where({ attempt_id: claim.attempt_id })
          .orderBy('entry_id')
          .select(db.raw('(now() at time zone ?)::date - budget_window as age', [timezone]));
        return rows.map(({ age }) => age);
      }),
    );
    expect(days).toEqual([
      [0, 0],
      [0, 0],
    ]);
  });
});

describe('a lease', () => {
  const anExpired = async (claim: Partial<Claim> = {}): Promise<Claim> => {
    const instance = await anInstance(db, { cost_type: 'per_call', rate_usd: 1 });
    const expired = aClaim(await aRun(db), instance, { lease_ms: -10_000, reserved_nano: 3n, ...claim });
    await claimAttempt(db, expired);
    return expired;
  };

  it('that ran out may be renewed still, so its slot is free when its attempt is lost, once', async () => {
    const instance = await anInstance(db);
    const [first, other] = [await aRun(db), await aRun(db)];
    const expired = aClaim(first, instance, { lease_ms: -10_000, reserved_nano: 3n });
    await claimAttempt(db, expired);
    expect(await claimAttempt(db, aClaim(other, instance))).toMatchObject({ outcome: 'full' });
    await loseExpiredAttempts(db);
    expect(await attemptOf(expired.attempt_id)).toEqual(lostAttempt('3'));
    expect(await claimAttempt(db, aClaim(other, instance))).toEqual(claimed);
    expect(await settleAttempt(db, anEnd(expired))).toBe(false);
    expect(await ledgerOf(expired.attempt_id)).toHaveLength(3);
    expect(await loseExpiredAttempts(db)).toBe(0);
  });

  it('that ran out is found once by two processes at once', async () => {
    const expired = await Promise.all(Array.from({ length: 40 }, () => anExpired()));
    const counts = await Promise.all([
      loseExpiredAttempts(db),
      loseExpiredAttempts(db),
      loseExpiredAttempts(db),
    ]);
    expect(counts.reduce((sum, count) => sum + count)).toBe(40);
    for (const { attempt_id } of expired) expect(await ledgerOf(attempt_id)).toHaveLength(2);
  });

  it('is renewed for those who hold the token of an open attempt', async () => {
    const [own, foreign, settled] = [await anExpired(), await anExpired(), await anExpired()];
    await settleAttempt(db, anEnd(settled));
    const held = [own, { ...foreign, token: own.token }, settled];
    expect(await renewLeases(db, held, 30_000)).toEqual(new Set([own.attempt_id]));
    await loseExpiredAttempts(db);
    expect(await attemptOf(own.attempt_id)).toMatchObject({ state: 'dispatched' });
    expect(await attemptOf(foreign.attempt_id)).toMatchObject({ state: 'lost' });
    expect(await renewLeases(db, [], 30_000)).toEqual(new Set());
  });

  it('is not renewed when the run of its call has ended', async () => {
    const instance = await anInstance(db);
    const [run, ended] = [await aRun(db), await aRun(db)];
    const [going, left] = [aClaim(run, instance), aClaim(ended, instance)];
    for (const claim of [going, left]) await claimAttempt(db, claim);
    await db('run').where({ run_id: ended.run_id }).update({ state: 'cancelled', finished_at: new Date() });
    expect(await renewLeases(db, [going, left], 30_000)).toEqual(new Set([going.attempt_id]));
  });
});
