import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listAudit } from '../../../src/db/access/audit.ts';
import { connectDatabase, type Db } from '../../../src/db/connect.ts';
import { insertEscalation } from '../../../src/db/escalation/escalation.ts';
import { findSkill, listSkills } from '../../../src/db/skill.ts';
import { newId } from '../../../src/parts/ids.ts';
import { createSkillMatcher } from '../../../src/parts/skill-matcher.ts';
import { type Learning, learnSkill } from '../../../src/use-cases/skills/learning.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';
import { aCallingKey, aProject } from '../../support/factories.ts';

let database: TestDatabase;
let db: Db;

beforeAll(async () => {
  database = await createTestDatabase();
  db = connectDatabase(database.url, 4);
});
afterAll(async () => {
  await db.destroy();
  await database.drop();
});

async function aCrystal(changes: Partial<Learning> = {}): Promise<Learning> {
  return {
    job_type: 'tts',
    escalation_id: newId('escalation'),
    signals: ['cap:tts', 'cap:tts@1', 'pipeline:trailer', 'step:voice', 'tag:local'],
    error: 'Error: sample_rate must be number, got "44.1k"',
    fingerprint: 'rate',
    from_level: 2,
    instructions: 'Write the rate as a number',
    trust: 'trusted',
    correction: null,
    ...changes,
    project_id: changes.project_id ?? (await aProject(db)).project_id,
  };
}

function make(crystal: Learning) {
  return db.transaction((trx) => learnSkill(trx, crystal));
}

async function read(crystal: Learning, id: string | null) {
  return findSkill(db, crystal.project_id, id ?? '');
}

/** An earlier escalation whose history holds these errors. */
function anEscalation(project_id: string, failures: readonly { error: string; fingerprint: string }[]) {
  const attempt = { level: 0, label: 'static template', attempted_at: 1 };
  return insertEscalation(db, {
    escalation_id: newId('escalation'),
    project_id,
    job_type: 'tts',
    prompt: '',
    context: undefined,
    repo_context: '',
    signals: [],
    result_schema: null,
    step: null,
    caller: aCallingKey(),
    previous_id: null,
    max_usd: null,
    escalation_level: 0,
    escalation_history: failures.map((failure) => ({ ...attempt, ...failure })),
    escalation_advice: [],
    fingerprint: null,
    ladder: {},
    model_spec: { level: 0, label: 'static template', capability: null, model: null },
  });
}

describe('crystallise', () => {
  it('keeps advice with a pattern of the error it answered, wherever it happened', async () => {
    const crystal = await aCrystal();
    const skill = await read(crystal, await make(crystal));
    expect(skill).toMatchObject({
      source: 'escalation-l2',
      trust: 'trusted',
      success_count: 1,
      failure_count: 0,
      uses: 0,
      repo_signals: ['cap:tts', 'cap:tts@1'],
      template: null,
      instructions: 'Write the rate as a number',
      escalation_id: crystal.escalation_id,
    });
    const { match } = createSkillMatcher({ db });
    const { project_id, job_type, signals } = crystal;
    const found = (error: string) => match({ project_id, job_type, signals, error });
    expect(await found('Error: sample_rate must be number, got "48k"')).toHaveLength(1);
    expect(await found('Error: bit_rate must be number, got "48k"')).toEqual([]);
    const [entry] = await listAudit(db, project_id, { limit: 5 });
    expect(entry).toMatchObject({
      action: 'skill.created',
      actor: crystal.escalation_id,
      subject: skill?.skill_id,
    });
  });

  it('makes one skill of an escalation, however often it is asked', async () => {
    const crystal = await aCrystal();
    const first = await make(crystal);
    expect(await make({ ...crystal, instructions: 'something else' })).toBe(first);
    expect(await listSkills(db, { project_id: crystal.project_id })).toMatchObject([{ success_count: 1 }]);
  });

  it('counts a finding of another escalation on the skill that has it already', async () => {
    const crystal = await aCrystal();
    const first = await make(crystal);
    const again = await aCrystal({ project_id: crystal.project_id, from_level: 4 });
    expect(await make(again)).toBe(first);
    expect(await read(crystal, first)).toMatchObject({ success_count: 2, source: 'escalation-l2', uses: 0 });
    expect(await make({ ...again, escalation_id: null, trust: 'candidate' })).toBe(first);
    expect(await read(crystal, first)).toMatchObject({ success_count: 2, trust: 'trusted' });
    expect(await make(await aCrystal())).not.toBe(first);
  });

  it('makes none whose pattern matches more than one in twenty other errors', async () => {
    const { project_id } = await aCrystal();
    const others = Array.from({ length: 38 }, (_, n) => ({
      error: `another ${'x'.repeat(n)}`,
      fingerprint: `${n}`,
    }));
    const alike = { error: 'Error: sample_rate must be number, got "1"', fingerprint: 'also' };
    await anEscalation(project_id, [...others, alike]);
    await anEscalation(project_id, [{ ...alike, fingerprint: 'rate' }, alike]);
    expect(await make(await aCrystal({ project_id }))).not.toBeNull();
    await anEscalation(project_id, [alike]);
    expect(await make(await aCrystal({ project_id }))).toBeNull();
  });

  it('makes none of an empty error, or of no instructions', async () => {
    expect(await make(await aCrystal({ error: ' \n' }))).toBeNull();
    expect(await make(await aCrystal({ instructions: '\u200b ' }))).toBeNull();
    expect(await make(await aCrystal({ instructions: null }))).toBeNull();
  });

  it('takes hidden characters out of instructions, and what is too long', async () => {
    const instructions = `a\r\nb\u200b\u202ec${'😀'.repeat(2_100)}`;
    const crystal = await aCrystal({ instructions });
    const skill = await read(crystal, await make(crystal));
    expect(skill?.instructions).toBe(`a\nbc${'😀'.repeat(1_997)}`);
  });
});

const original = { rate: '44.1k', output_path: 'media://out.wav' };

describe('a template', () => {
  it.each([
    [
      'is guarded where the value is a literal',
      { original, corrected: { ...original, rate: 44_100 } },
      '[{"op":"test","path":"/rate","value":"44.1k"},{"op":"replace","path":"/rate","value":44100}]',
    ],
    [
      'is derived where a filter gives the value',
      { original: { rate: '44100' }, corrected: { rate: 44_100 } },
      '[{"op":"replace","path":"/rate","value":"{{ input.rate | number }}"}]',
    ],
  ])('%s', async (_, inputs, template) => {
    const crystal = await aCrystal({ correction: { ...inputs, isValid: true } });
    expect((await read(crystal, await make(crystal)))?.template).toBe(template);
  });

  it.each([
    ['touches what is protected', { ...original, rate: 1, output_path: 'media://elsewhere.wav' }, true],
    ['gives an input that is not valid', { ...original, rate: '44100' }, false],
    ['is longer than a skill may be', { ...original, rate: 1, text: 'x'.repeat(4_000) }, true],
  ])('that %s is left out, and the instructions are kept', async (_, corrected, isValid) => {
    const crystal = await aCrystal({ correction: { original, corrected, isValid } });
    expect(await read(crystal, await make(crystal))).toMatchObject({
      template: null,
      instructions: 'Write the rate as a number',
    });
  });

  it('speaks for itself when a person corrected without a word', async () => {
    const correction = { original, corrected: { ...original, rate: 44_100 }, isValid: true };
    const crystal = await aCrystal({ instructions: null, from_level: 5, correction });
    expect(await read(crystal, await make(crystal))).toMatchObject({
      source: 'human-fix',
      instructions: expect.stringMatching(/^Correct the input by this JSON Patch: \[.*44100/),
    });
  });
});
