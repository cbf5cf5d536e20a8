import { expect, it } from 'vitest';
import {
  type CacheLookup,
  listDecidedKeys,
  lookUpResult,
  purgeResults,
  releaseLead,
  storeResult,
} from '../../src/db/attempt/cached-result.ts';
import { useDatabase } from '../support/database.ts';
import {
  aClaim,
  anEnd,
  anInstance,
  aRun,
  claimAttempt,
  type StoredRun,
  settleAttempt,
} from '../support/factories.ts';

const { db } = useDatabase(8);

const other = 'b'.repeat(64);
let made = 0;

/** Of a call that was never made. */
async function aLookup(run?: StoredRun): Promise<CacheLookup & { readonly run: StoredRun }> {
  made += 1;
  const of = run ?? (await aRun(db));
  return {
    run: of,
    project_id: of.project_id,
    keys: [made.toString(16).padStart(64, 'a')],
    step: { run_id: of.run_id, step_id: 'a', item: 0, revision: 0 },
    pipeline: 'trailer',
    capability: 'concat',
    ttl_ms: 60_000,
  };
}

/** The same call, of a step of another run of the project. */
async function anEqual(lookup: CacheLookup): Promise<CacheLookup> {
  const { run_id } = await aRun(db, { project_id: lookup.project_id });
  return { ...lookup, step: { ...lookup.step, run_id } };
}

async function begin({ run }: { readonly run: StoredRun }) {
  const claim = aClaim(run, await anInstance(db), { known_failures: [] });
  await claimAttempt(db, claim);
  return claim;
}

async function kept(lookup: CacheLookup & { readonly run: StoredRun }, key = lookup.keys[0] ?? '') {
  const claim = await begin(lookup);
  await settleAttempt(db, anEnd(claim));
  const {
    keys: [led_key = ''],
    run: _,
    ...rest
  } = lookup;
  const result = { attempt_id: claim.attempt_id, places: {}, files: {} };
  await storeResult(db, { ...rest, ...result, led_key, key });
  return claim;
}

const long = (table: string) => db(table).update({ led_at: db.raw("led_at - interval '1 minute'") });

it('of many who ask at once one leads', async () => {
  const lookup = await aLookup();
  const all = await Promise.all(Array.from({ length: 8 }, () => anEqual(lookup)));
  const found = await Promise.all(all.map((one) => lookUpResult(db, one)));
  expect(found.map(({ kind }) => kind).sort()).toEqual([
    'follow',
    'follow',
    'follow',
    'follow',
    'follow',
    'follow',
    'follow',
    'lead',
  ]);
});

it('a leader may ask again; the others follow until there is a result', async () => {
  const lookup = await aLookup();
  const equal = await anEqual(lookup);
  const waited = [{ project_id: lookup.project_id, key: lookup.keys[0] ?? '' }];
  for (const _ of [1, 2]) expect(await lookUpResult(db, lookup)).toEqual({ kind: 'lead' });
  expect(await lookUpResult(db, equal)).toEqual({ kind: 'follow' });
  expect(await listDecidedKeys(db, waited)).toEqual([]);
  const { attempt_id } = await kept(lookup);
  expect(await listDecidedKeys(db, waited)).toEqual(waited);
  expect(await lookUpResult(db, equal)).toMatchObject({
    kind: 'hit',
    result: { attempt_id, run_id: lookup.run.run_id, output: { path: 'media://out.mp4' } },
  });
});

it('a leader is believed while its attempt is open, however long that takes, and a moment after', async () => {
  const lookup = await aLookup();
  const equal = await anEqual(lookup);
  await lookUpResult(db, lookup);
  await begin(lookup);
  await long('cached_result');
  expect(await lookUpResult(db, equal)).toEqual({ kind: 'follow' });
  await db('attempt')
    .where({ run_id: lookup.run.run_id })
    .update({ lease_until: db.raw("clock_timestamp() - interval '11 seconds'") });
  expect(await lookUpResult(db, equal)).toEqual({ kind: 'lead' });
  expect(await lookUpResult(db, lookup)).toEqual({ kind: 'follow' });
});

it('only the leader gives up its lead, and a result is none', async () => {
  const lookup = await aLookup();
  const equal = await anEqual(lookup);
  const key = { project_id: lookup.project_id, key: lookup.keys[0] ?? '' };
  await lookUpResult(db, lookup);
  await releaseLead(db, key, equal.step);
  expect(await lookUpResult(db, equal)).toEqual({ kind: 'follow' });
  await releaseLead(db, key, lookup.step);
  expect(await lookUpResult(db, equal)).toEqual({ kind: 'lead' });
  await kept(lookup);
  await releaseLead(db, key, lookup.step);
  expect(await lookUpResult(db, equal)).toMatchObject({ kind: 'hit' });
});

it('a result is as old as the reader allows, and as its maker allows', async () => {
  const lookup = await aLookup();
  await kept(lookup);
  const equal = await anEqual(lookup);
  await db('cached_result').update({ stored_at: db.raw("stored_at - interval '30 seconds'") });
  expect(await lookUpResult(db, equal)).toMatchObject({ kind: 'hit' });
  expect(await lookUpResult(db, { ...equal, ttl_ms: 10_000 })).toEqual({ kind: 'lead' });
  const second = await aLookup();
  await kept(second);
  await db('cached_result').update({ expires_at: db.raw('clock_timestamp()') });
  expect(await lookUpResult(db, { ...(await anEqual(second)), ttl_ms: 3_600_000 })).toEqual({ kind: 'lead' });
});

it('a result of another project is no hit, also under the same key', async () => {
  const lookup = await aLookup();
  await kept(lookup);
  const strange = { ...(await aLookup()), keys: lookup.keys };
  expect(await lookUpResult(db, strange)).toEqual({ kind: 'lead' });
});

it('an output of a step that did not succeed in the end is no hit', async () => {
  const lookup = await aLookup();
  await kept(lookup);
  await db('step').where({ run_id: lookup.run.run_id }).update({ state: 'cancelled' });
  expect((await lookUpResult(db, await anEqual(lookup))).kind).not.toBe('hit');
});

it('an answer of an instance with another spec is kept under its own key', async () => {
  const lookup = await aLookup();
  await lookUpResult(db, lookup);
  await kept(lookup, other);
  const equal = await anEqual(lookup);
  expect(await lookUpResult(db, { ...equal, keys: [...lookup.keys, other] })).toMatchObject({
    kind: 'hit',
    result: { key: other },
  });
  expect(await lookUpResult(db, equal)).toEqual({ kind: 'lead' });
});

it('expired results are deleted, and calls without an end', async () => {
  const lookup = await aLookup();
  await kept(lookup);
  await lookUpResult(db, await aLookup(lookup.run));
  await db('cached_result').update({ expires_at: db.raw("now() - interval '1 second'") });
  await lookUpResult(db, await aLookup(lookup.run));
  expect(await purgeResults(db)).toBeGreaterThanOrEqual(2);
  expect(await db('cached_result').select('project_id')).toHaveLength(1);
});
