import { describe, expect, it } from 'vitest';
import {
  cancelOrphanedEscalations,
  cancelRunEscalations,
  type EscalationChange,
  findEscalation,
  findLeader,
  findStepEscalation,
  insertEscalation,
  listRecentErrors,
  listUndeliveredEscalations,
  markEscalationDelivered,
  type NewEscalation,
  readEscalation,
  storeTransition,
} from '../../../src/db/escalation/escalation.ts';
import { finishRun } from '../../../src/db/run/run.ts';
import { listRunSteps } from '../../../src/db/step/step.ts';
import { answerStep, keepStepOpen } from '../../../src/db/step/step-progress.ts';
import { readStepRevision, storeStepRevision } from '../../../src/db/step/step-revision.ts';
import { newId } from '../../../src/parts/ids.ts';
import { useDatabase } from '../../support/database.ts';
import {
  aCallingKey,
  aClaim,
  anEnd,
  anInstance,
  aProject,
  aRun,
  claimAttempt,
  settleAttempt,
} from '../../support/factories.ts';

const { db } = useDatabase(8);

const level0 = { level: 0, label: 'static template', capability: null, model: null };
function anAttempt(error: string) {
  return {
    level: 0,
    label: 'static template',
    attempted_at: 1_700_000_000,
    error,
    fingerprint: error,
  };
}

async function anEscalation(changes: Partial<NewEscalation> = {}): Promise<NewEscalation> {
  const escalation: NewEscalation = {
    escalation_id: newId('escalation'),
    job_type: 'concat',
    prompt: 'join the clips',
    context: undefined,
    repo_context: '',
    signals: ['cap:concat'],
    result_schema: null,
    step: null,
    caller: changes.step == null ? aCallingKey() : null,
    previous_id: null,
    ladder: {},
    escalation_level: 0,
    escalation_history: [anAttempt('one')],
    escalation_advice: [],
    model_spec: level0,
    fingerprint: null,
    max_usd: 0.1,
    ...changes,
    project_id: changes.project_id ?? (await aProject(db)).project_id,
  };
  expect(await insertEscalation(db, escalation)).toBe(true);
  return escalation;
}

function aChange(
  { escalation_id, escalation_history }: NewEscalation,
  change: Partial<EscalationChange> = {},
) {
  return {
    escalation_id,
    transition: 0,
    ladder: {},
    escalation_level: 1,
    escalation_history,
    escalation_advice: [],
    model_spec: level0,
    active_skills: [],
    state: 'running' as const,
    error: null,
    fingerprint: null,
    leader_id: null,
    ...change,
  };
}

describe('a transition', () => {
  it('is stored by one of those that work on the same state', async () => {
    const escalation = await anEscalation();
    const advised = Array.from({ length: 6 }, (_, at) => ({
      from_level: 1,
      label: 'fast model',
      instructions: `advice ${at}`,
      fingerprint: 'one',
    }));
    const stored = await Promise.all(
      advised.map((advice) => storeTransition(db, aChange(escalation, { escalation_advice: [advice] }))),
    );
    expect(stored.filter(Boolean)).toHaveLength(1);
    expect(await readEscalation(db, escalation.escalation_id)).toMatchObject({
      transition: 1,
      escalation_advice: [advised[stored.indexOf(true)]],
      finished_at: null,
    });
  });

  it('keeps what it does not name, and ends an escalation once', async () => {
    const escalation = await anEscalation({ context: null });
    await storeTransition(db, aChange(escalation, { state: 'in_review', review_id: 'rev_1' }));
    const end = aChange(escalation, { transition: 1, state: 'succeeded', result: null, skill_id: 'skl_1' });
    expect(await storeTransition(db, end)).toBe(true);
    expect(await storeTransition(db, { ...end, transition: 2, state: 'failed' })).toBe(false);
    const row = await findEscalation(db, escalation.project_id, escalation.escalation_id);
    expect(row).toMatchObject({
      state: 'succeeded',
      review_id: 'rev_1',
      skill_id: 'skl_1',
      finished_at: expect.any(Date),
      has_result: true,
      result: null,
      has_context: true,
      context: null,
    });
    expect(await findEscalation(db, 'another', escalation.escalation_id)).toBeUndefined();
  });
});

describe('the lists of an escalation', () => {
  const two = [anAttempt('one'), anAttempt('two, with \u0000')];

  it('grow at their end', async () => {
    const escalation = await anEscalation();
    expect(await storeTransition(db, aChange(escalation, { escalation_history: two }))).toBe(true);
    const three = [...two, anAttempt('three')];
    expect(await storeTransition(db, aChange(escalation, { transition: 1, escalation_history: three }))).toBe(
      true,
    );
  });

  it.each([
    ['shorter', []],
    ['changed', [anAttempt('other')]],
    ['added to in front', [anAttempt('zero'), anAttempt('one')]],
  ])('are refused when %s', async (_, escalation_history) => {
    const escalation = await anEscalation();
    await expect(storeTransition(db, aChange(escalation, { escalation_history }))).rejects.toThrow(
      'only grow',
    );
    expect(await readEscalation(db, escalation.escalation_id)).toMatchObject({
      transition: 0,
      escalation_history: escalation.escalation_history,
    });
  });
});

describe('a step', () => {
  const ofStep = async () => {
    const run = await aRun(db);
    const step = { run_id: run.run_id, step_id: 'a', item: 0 };
    return { run, step, escalation: await anEscalation({ project_id: run.project_id, step }) };
  };

  it('has one open ladder, and another after that ended', async () => {
    const { run, step, escalation } = await ofStep();
    const second = { ...escalation, escalation_id: newId('escalation') };
    expect(await insertEscalation(db, second)).toBe(false);
    expect(await cancelRunEscalations(db, run.run_id)).toEqual([escalation.escalation_id]);
    expect(await findStepEscalation(db, step)).toMatchObject({ state: 'cancelled' });
    expect(await insertEscalation(db, second)).toBe(true);
    await keepStepOpen(db, step, { state: 'in_review', error: null, data: {} });
    expect(await listRunSteps(db, run.run_id)).toMatchObject([{ escalation_id: second.escalation_id }]);
  });

  it('whose run ended loses its open ladder, and no other does', async () => {
    const [left, going] = [await ofStep(), await ofStep()];
    const alone = await anEscalation();
    const end = { state: 'cancelled', output: undefined, error: null, step_ids: ['a'] } as const;
    await finishRun(db, { run_id: left.run.run_id, ...end });
    expect(await cancelOrphanedEscalations(db)).toBe(1);
    expect(await cancelOrphanedEscalations(db)).toBe(0);
    const rows = await Promise.all(
      [left.escalation, going.escalation, alone].map(({ escalation_id }) =>
        readEscalation(db, escalation_id),
      ),
    );
    expect(rows).toMatchObject([
      { state: 'cancelled', transition: 1, error: { code: 'escalation_cancelled' } },
      { state: 'running' },
      { state: 'running' },
    ]);
  });

  it('gets a correction for each choice of a transition once, numbered from 1', async () => {
    const { step, escalation } = await ofStep();
    const of = (transition: number, choice: number, input: string) =>
      storeStepRevision(db, {
        ...step,
        escalation_id: escalation.escalation_id,
        transition,
        choice,
        input,
        source: 'repair',
      });
    const revisions = [
      await of(0, 0, 'x'),
      await of(0, 1, 'y'),
      await of(0, 0, 'again'),
      await of(1, 0, 'z'),
    ];
    expect(revisions.map(({ revision, input }) => [revision, input])).toEqual([
      ...[
        [1, 'x'],
        [2, 'y'],
        [1, 'x'],
        [3, 'z'],
      ],
    ]);
    expect(await readStepRevision(db, step, 2)).toMatchObject({ input: 'y' });
  });

  it('waits, accepts one answer and writes one line of the log', async () => {
    const { step, run } = await ofStep();
    const hold = { error: { code: 'input_invalid', message: 'bad' }, data: {} };
    expect(await keepStepOpen(db, step, { state: 'retrying', ...hold })).toBe(true);
    for (const _ of [1, 2]) expect(await keepStepOpen(db, step, { state: 'in_review', ...hold })).toBe(true);
    const answers = await Promise.all([
      answerStep(db, step, { state: 'succeeded', output: null, data: {} }),
      answerStep(db, step, { state: 'skipped', data: {} }),
    ]);
    expect(answers.filter(Boolean)).toHaveLength(1);
    expect(await keepStepOpen(db, step, { state: 'in_review', ...hold })).toBe(false);
    const events = await db('event').where({ run_id: run.run_id, step_id: 'a' }).orderBy('id').pluck('type');
    const end = answers[0] ? 'step.succeeded' : 'step.skipped';
    expect(events).toEqual(['step.retrying', 'step.in_review', end]);
  });
});

it('an escalation costs what its own attempts cost and hold', async () => {
  const escalation = await anEscalation();
  const { project_id, escalation_id } = escalation;
  const instance = await anInstance(db, { max_concurrency: 10 });
  const call = (key: string, project = project_id) => {
    const order = { step: null, key, reserved_nano: 5n };
    return { ...aClaim({ run_id: '', project_id: project }, instance, order) };
  };
  const settled = [
    call(`${escalation_id}.0`),
    call(`${escalation_id}.1`),
    call(`${escalation_id}0.0`),
    call(`${escalation_id}.2`, (await aProject(db)).project_id),
  ];
  for (const claim of settled) {
    await claimAttempt(db, claim);
    await settleAttempt(db, anEnd(claim, { settled_nano: 3n }));
  }
  await claimAttempt(db, call(`${escalation_id}.3`));
  expect(await readEscalation(db, escalation_id)).toMatchObject({ cost_nano: '6', reserved_nano: '5' });
});

it('followers wait for the first open escalation with their failure', async () => {
  const { project_id } = await aProject(db);
  const failed = { project_id, fingerprint: 'f' };
  const leader = await anEscalation(failed);
  const other = await anEscalation({ project_id, fingerprint: 'g' });
  const followers = [await anEscalation(failed), await anEscalation(failed)];
  const leaderOf = async (escalation: NewEscalation, fingerprint = 'f') =>
    (await findLeader(db, { ...escalation, fingerprint, younger_than_s: 600 }))?.escalation_id;
  expect(await Promise.all(followers.map((one) => leaderOf(one)))).toEqual([
    leader.escalation_id,
    leader.escalation_id,
  ]);
  expect(await leaderOf(leader)).toBeUndefined();
  expect(await leaderOf(other, 'g')).toBeUndefined();
  expect(await leaderOf({ ...(followers[0] as NewEscalation), project_id: 'another' })).toBeUndefined();
  await storeTransition(db, aChange(leader, { state: 'failed' }));
  expect(await leaderOf(followers[1] as NewEscalation)).toBe(followers[0]?.escalation_id);
});

it('an escalation that is open for too long is no longer waited for', async () => {
  const { project_id } = await aProject(db);
  const failed = { project_id, fingerprint: 'f' };
  const [stuck, next, follower] = [
    await anEscalation(failed),
    await anEscalation(failed),
    await anEscalation(failed),
  ];
  await db('escalation')
    .where({ escalation_id: stuck.escalation_id })
    .update({ created_at: db.raw(`clock_timestamp() - interval '601 seconds'`) });
  const leader = await findLeader(db, { ...follower, fingerprint: 'f', younger_than_s: 600 });
  expect(leader?.escalation_id).toBe(next.escalation_id);
});

it('a start is undelivered until it is marked or its escalation ended', async () => {
  const [marked, ended, left] = [await anEscalation(), await anEscalation(), await anEscalation()];
  await markEscalationDelivered(db, marked.escalation_id);
  await storeTransition(db, aChange(ended, { state: 'cancelled' }));
  const ids = (await listUndeliveredEscalations(db, 0, 100)).map(({ escalation_id }) => escalation_id);
  expect([marked, ended, left].map(({ escalation_id }) => ids.includes(escalation_id))).toEqual([
    ...[false, false, true],
  ]);
});

it('recent errors are those of the last escalations of the job type', async () => {
  const { project_id } = await aProject(db);
  for (const error of ['a', 'b', 'c']) {
    await anEscalation({ project_id, escalation_history: [anAttempt(error)] });
  }
  expect(await listRecentErrors(db, { project_id, job_type: 'concat' }, 2)).toEqual([
    { error: 'c', fingerprint: 'c' },
    { error: 'b', fingerprint: 'b' },
  ]);
  expect(await listRecentErrors(db, { project_id, job_type: 'other' }, 2)).toEqual([]);
});
