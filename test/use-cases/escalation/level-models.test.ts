/** Levels whose models have names of their own (`LADDER_LEVELS`). */

import type { ExecuteAnswer } from '@capstan/core/contracts/escalation';
import type { RunTimeline } from '@capstan/core/contracts/run-picture';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readJson } from '../../support/api.ts';
import { type LadderWorld, startLadderWorld } from '../../support/ladders.ts';

let world: LadderWorld;
let project: string;

beforeAll(async () => {
  world = await startLadderWorld(
    { local: 0, fast: 0, claude: 0.01 },
    { LADDER_LEVELS: 'fast=model.local,top=model.claude' },
  );
});
afterAll(() => world.close());
beforeEach(async () => {
  project = await world.newProject();
});

test('the ladder of a step climbs over the models that the setting names', async () => {
  world.answer(({ kind }) =>
    kind === 'advise'
      ? { instructions: 'round down', reasoning: 'it is odd', suggested_executor_level: 1 }
      : { patch: [{ op: 'replace', path: '/rate', value: 44_100 }], used_skills: [] },
  );
  const { run_id, place } = await world.failStep({ project_id: project, input: { rate: 44_101 } });
  expect((await world.climb(place)).command).toMatchObject({ type: 'end', outcome: 'succeeded' });
  // The levels capable and reasoning have no instance, and model.fast is no level here.
  expect(world.shown().map(({ kind, model }) => `${kind} ${model}`)).toEqual([
    'advise local',
    'correct local',
  ]);
  const [, { columns, rows }] = await readJson<RunTimeline>(
    world.call(project, `/v1/runs/${run_id}/timeline`),
  );
  const levels = rows.map((row) => row[columns.indexOf('level')]);
  expect(levels.filter((level) => level !== null)).toEqual([1, 1]);
});

test('/execute uses the model of its level, and names it', async () => {
  world.answer(() => ({ result: 'A lake.' }));
  const body = {
    job_type: 'caption',
    prompt: 'Write.',
    level: 2,
    escalation_history: [],
    escalation_advice: [],
  };
  const [, answer] = await readJson<ExecuteAnswer>(world.call(project, '/execute', { body }));
  expect(answer.model_spec).toEqual({
    level: 4,
    label: 'top-tier model',
    capability: 'model.claude',
    model: 'claude',
  });
});
