import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  findSkill,
  flagSkill,
  keepSkill,
  listSkills,
  type NewSkill,
  retireSkill,
  reviseSkill,
  storeSkill,
} from '../../../src/db/skill.ts';
import { addSkillUses, listSkillUses } from '../../../src/db/skill-use.ts';
import { newId } from '../../../src/parts/ids.ts';
import { useDatabase } from '../../support/database.ts';
import { aProject } from '../../support/factories.ts';

const { db } = useDatabase(8);

function hash(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

async function aSkill(changes: Partial<NewSkill> = {}): Promise<NewSkill> {
  const { instructions = 'write 44100' } = changes;
  return {
    skill_id: newId('skill'),
    job_type: 'concat',
    trust: 'trusted',
    source: 'human-fix',
    repo_signals: ['cap:concat'],
    error_patterns: ['rate'],
    template: null,
    author: 'key_1',
    success_count: 1,
    failure_count: 0,
    added_success: 1,
    added_failure: 0,
    escalation_id: null,
    last_used_at: null,
    created_at: null,
    content_sha256: hash(instructions),
    ...changes,
    instructions,
    project_id: changes.project_id ?? (await aProject(db)).project_id,
  };
}

async function aStoredSkill(changes: Partial<NewSkill> = {}): Promise<NewSkill> {
  const skill = await aSkill(changes);
  await storeSkill(db, skill);
  return skill;
}

function read({ project_id, skill_id }: NewSkill) {
  return findSkill(db, project_id, skill_id);
}

describe('storing a skill', () => {
  it('counts exact duplicates on the existing one, also when all arrive in parallel', async () => {
    const skill = await aSkill();
    const copies = Array.from({ length: 6 }, () => ({ ...skill, skill_id: newId('skill') }));
    const stored = await Promise.all(copies.map((copy) => storeSkill(db, copy)));
    expect(stored.filter(({ is_new }) => is_new)).toHaveLength(1);
    expect(new Set(stored.map(({ skill_id }) => skill_id)).size).toBe(1);
    const rows = await listSkills(db, { project_id: skill.project_id });
    expect(rows).toMatchObject([{ success_count: 6, failure_count: 0, uses: 0, version: 1 }]);
  });

  it('keeps equal texts of other projects and job types apart', async () => {
    const skill = await aStoredSkill();
    for (const changes of [{ job_type: 'mix' }, { project_id: (await aProject(db)).project_id }]) {
      const other = { ...skill, ...changes, skill_id: newId('skill') };
      expect(await storeSkill(db, other)).toEqual({ skill_id: other.skill_id, is_new: true });
    }
    expect(await read(skill)).toMatchObject({ success_count: 1 });
    expect(await findSkill(db, 'another', skill.skill_id)).toBeUndefined();
  });

  it('takes counts and times as they are given, and is vouched for by a trusted duplicate', async () => {
    const [last_used_at, created_at] = [new Date(2_000_000), new Date(1_000_000)];
    const given = { success_count: 45, failure_count: 5, last_used_at, created_at };
    const skill = await aStoredSkill({ ...given, trust: 'candidate' });
    expect(await read(skill)).toMatchObject({ ...given, trust: 'candidate', uses: 0 });
    await storeSkill(db, { ...skill, skill_id: newId('skill'), trust: 'trusted', added_success: 0 });
    await storeSkill(db, { ...skill, skill_id: newId('skill'), trust: 'candidate', added_success: 0 });
    expect(await read(skill)).toMatchObject({ ...given, trust: 'trusted' });
  });

  it('lists the skills with all signals present', async () => {
    const skill = await aStoredSkill({ repo_signals: ['cap:concat', 'tag:x'] });
    const list = (signals: string[], state?: 'active' | 'retired') =>
      listSkills(db, { project_id: skill.project_id, job_type: 'concat', signals, state, flagged: false });
    expect(await list(['tag:x', 'cap:concat', 'more'], 'active')).toHaveLength(1);
    expect(await list(['cap:concat'])).toEqual([]);
    expect(await list(['tag:x', 'cap:concat'], 'retired')).toEqual([]);
  });
});

describe('uses', () => {
  it('match the counters, however often and in parallel they are reported', async () => {
    const [one, two] = [await aSkill(), await aSkill({ instructions: 'other' })];
    const { project_id } = one;
    for (const skill of [one, { ...two, project_id }]) await storeSkill(db, skill);
    const outcomes = ['success', 'failure', 'neutral', 'success'] as const;
    const tell = (transition: number) => {
      const uses = [one, two].map(({ skill_id }, at) => ({
        skill_id,
        version: 1,
        level: 1,
        outcome: outcomes[(transition + at) % 4] ?? 'neutral',
      }));
      const told = transition % 2 === 0 ? uses : uses.toReversed();
      return addSkillUses(db, { project_id, occasion: { escalation_id: 'esc_1', transition }, uses: told });
    };
    await Promise.all([0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3].map(tell));
    for (const { skill_id } of [one, two]) {
      const uses = await listSkillUses(db, { project_id, skill_id }, { limit: 100 });
      const count = (outcome: string) => uses.filter((use) => use.outcome === outcome).length;
      expect([count('success'), count('failure'), count('neutral')]).toEqual([4, 2, 2]);
      expect(await findSkill(db, project_id, skill_id)).toMatchObject({
        success_count: 5,
        failure_count: 2,
        uses: 6,
      });
    }
  });

  it('without an escalation count whenever they are reported, and never in another project', async () => {
    const { project_id, skill_id } = await aStoredSkill();
    const use = { skill_id, version: 1, level: 2, outcome: 'failure' as const };
    const told = { project_id, occasion: null, uses: [use] };
    await addSkillUses(db, told);
    expect(await addSkillUses(db, told)).toMatchObject([{ failure_count: 2, uses: 2 }]);
    expect(await addSkillUses(db, { ...told, project_id: (await aProject(db)).project_id })).toEqual([]);
    const [newest] = await listSkillUses(db, { project_id, skill_id }, { limit: 1 });
    const older = await listSkillUses(db, { project_id, skill_id }, { after: newest?.use_id, limit: 9 });
    expect(older).toHaveLength(1);
    expect(await listSkillUses(db, { project_id: 'another', skill_id }, { limit: 9 })).toEqual([]);
  });
});

describe('a skill under review', () => {
  const fail = async ({ project_id, skill_id }: NewSkill) => {
    const uses = [{ skill_id, version: 1, level: 1, outcome: 'failure' as const }];
    return (await addSkillUses(db, { project_id, occasion: null, uses }))[0];
  };

  it('is flagged once, and after it was kept only by later uses', async () => {
    const skill = await aStoredSkill();
    await fail(skill);
    expect([await flagSkill(db, skill.skill_id), await flagSkill(db, skill.skill_id)]).toEqual([true, false]);
    expect(await keepSkill(db, 'another', skill.skill_id)).toBe(false);
    expect(await keepSkill(db, skill.project_id, skill.skill_id)).toBe(true);
    expect(await fail(skill)).toMatchObject({ uses: 2, uses_since_keep: 1, flagged_at: null });
  });

  it('gets a new version from one of two changes, and keeps the old one as it was', async () => {
    const skill = await aStoredSkill();
    await flagSkill(db, skill.skill_id);
    const revise = (instructions: string) =>
      reviseSkill(db, {
        ...skill,
        version: 1,
        trust: null,
        instructions,
        content_sha256: hash(instructions),
      });
    const revised = await Promise.all([revise('x'), revise('y')]);
    expect(revised.filter(Boolean)).toHaveLength(1);
    const instructions = revised[0] ? 'x' : 'y';
    expect(await read(skill)).toMatchObject({ version: 2, instructions, flagged_at: null });
    const texts = await db('skill_version').where({ skill_id: skill.skill_id }).orderBy('version');
    expect(texts.map((text) => text.instructions)).toEqual(['write 44100', instructions]);
    const change = db('skill_version').where({ skill_id: skill.skill_id }).update({ instructions: 'z' });
    await expect(change).rejects.toThrow('append-only');
  });

  it('that is retired keeps its id, also for an equal one, and changes no more', async () => {
    const skill = await aStoredSkill();
    expect(await retireSkill(db, 'another', skill.skill_id)).toBe(false);
    expect(await retireSkill(db, skill.project_id, skill.skill_id)).toBe(true);
    const again = await storeSkill(db, { ...skill, skill_id: newId('skill') });
    expect(again).toEqual({ skill_id: skill.skill_id, is_new: false });
    expect(await reviseSkill(db, { ...skill, version: 1, trust: null, content_sha256: hash('x') })).toBe(
      false,
    );
    expect(await flagSkill(db, skill.skill_id)).toBe(false);
    expect(await read(skill)).toMatchObject({ state: 'retired', version: 1 });
  });
});
