import type { AuditEntry, Scope } from '@capstan/core/contracts/access';
import type { Problem } from '@capstan/core/contracts/problem';
import type { Skill, SkillUse } from '@capstan/core/contracts/skill';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { flagSkill } from '../../src/db/skill.ts';
import { addSkillUses } from '../../src/db/skill-use.ts';
import { newId } from '../../src/parts/ids.ts';
import { createSkillMatcher } from '../../src/parts/skill-matcher.ts';
import { learnSkill } from '../../src/use-cases/skills/learning.ts';
import { type CallOptions, readJson, startTestApi, type TestApi } from '../support/api.ts';
import { countProcessorMs } from '../support/processor-time.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(async () => api.close());

/** A project of its own, with calls by its admin key and by a key that may read and write skills only. */
async function aRegistry() {
  const { projectId, apiKey } = await api.createProject('skills');
  const scopes: Scope[] = ['skill:read', 'skill:write'];
  const admin = (path: string, options: CallOptions = {}) =>
    api.call(path, { ...options, headers: { authorization: `Bearer ${apiKey}` } });
  const made = await admin('/v1/keys', { body: { name: 'member', scopes, projects: [projectId] } });
  const { key } = (await made.json()) as { key: string };
  const member = (path: string, options: CallOptions = {}) =>
    api.call(path, { ...options, headers: { authorization: `Bearer ${key}` } });
  const list = async (query = '') => (await readJson<Skill[]>(admin(`/skills${query}`)))[1];
  return { projectId, admin, member, list };
}

function aRequest(changes: object = {}) {
  return {
    pattern: { job_type: 'tts', repo_signals: ['cap:tts'], error_patterns: ['rate must be'] },
    instructions: 'Write the rate as a number',
    source: 'human-fix',
    ...changes,
  };
}

async function create(call: (path: string, options: CallOptions) => Promise<Response>, changes: object = {}) {
  return readJson<{ id: string }>(call('/skills', { method: 'POST', body: aRequest(changes) }));
}

function patch<Body = Skill>(
  call: (path: string, options: CallOptions) => Promise<Response>,
  id: string,
  body: object,
) {
  return readJson<Body>(call(`/skills/${id}`, { method: 'PATCH', body }));
}

test('a merge patch is refused, with the form that takes its place', async () => {
  const { admin, member } = await aRegistry();
  for (const call of [admin, member]) {
    const sent = call('/skills', { method: 'POST', body: aRequest({ template: '{"rate": 44100}' }) });
    const [status, problem] = await readJson<Problem>(sent);
    expect([status, problem.errors]).toEqual([
      422,
      [
        {
          pointer: '/template',
          code: 'invalid_template',
          message: expect.stringContaining('is no JSON Patch: send a list such as [{"op":"test"'),
        },
      ],
    ]);
  }
  const [, { id }] = await create(admin);
  expect((await patch<Problem>(admin, id, { template: '{"rate": 44100}' }))[0]).toBe(422);
});

describe('POST and GET /skills', () => {
  test("take and answer the specification's shapes", async () => {
    const { admin, list } = await aRegistry();
    const counts = { success_count: 45, failure_count: 5, confidence: 0, last_used: 1_700_000_000.5 };
    const [status, made] = await create(admin, {
      ...counts,
      created_at: 1_600_000_000,
      template: 'say {{ input.a }}',
    });
    expect([status, made]).toEqual([201, { id: expect.stringMatching(/^skl_/) }]);
    expect(await list('?job_type=tts&signals=cap:other,%20cap:tts')).toEqual([
      {
        ...aRequest(),
        ...made,
        ...counts,
        created_at: 1_600_000_000,
        template: 'say {{ input.a }}',
        confidence: 0.9,
        state: 'active',
        flagged: false,
        trust: 'trusted',
        version: 1,
        uses: 0,
      },
    ]);
    expect(await list('?job_type=mix')).toEqual([]);
    expect(await list('?signals=cap:other')).toEqual([]);
    expect(await list('?signals=')).toEqual([]);
  });

  test('order by confidence, then by last use', async () => {
    const { admin, list } = await aRegistry();
    const store = async (
      instructions: string,
      success_count: number,
      failure_count: number,
      last_used: number,
    ) => (await create(admin, { instructions, success_count, failure_count, last_used }))[1].id;
    const proven = await store('a', 45, 5, 9);
    const [older, newer] = [await store('b', 1, 0, 5), await store('c', 3, 0, 7)];
    expect((await list()).map(({ id }) => id)).toEqual([newer, older, proven]);
  });

  test('take counts, times and trust from admin keys only, and any source as it is', async () => {
    const { member, list } = await aRegistry();
    const forged = {
      success_count: 1_000,
      failure_count: 0,
      last_used: 4e9,
      created_at: 1,
      trust: 'trusted',
    };
    const [status] = await create(member, { ...forged, source: 'escalation-l4' });
    expect(status).toBe(201);
    const [skill] = await list();
    expect(skill).toMatchObject({
      success_count: 1,
      failure_count: 0,
      confidence: 1,
      trust: 'candidate',
      source: 'escalation-l4',
    });
    expect(skill?.last_used).toBeLessThan(4e9);
    expect(skill?.created_at).toBeGreaterThan(1e9);
  });

  test('takes the latest time that there is', async () => {
    const { admin, list } = await aRegistry();
    const [status] = await create(admin, { last_used: 8.64e12, created_at: 0 });
    expect([status, (await list())[0]?.last_used]).toEqual([201, 8.64e12]);
  });

  test('count a duplicate that an admin key sends, not one by which another key praises itself', async () => {
    const { admin, member, list } = await aRegistry();
    const [, { id }] = await create(admin, { success_count: 3 });
    const again = { pattern: { ...aRequest().pattern, repo_signals: ['cap:tts', 'cap:tts'] } };
    expect(await create(admin, { ...again, success_count: 4, failure_count: 2 })).toEqual([200, { id }]);
    for (let n = 0; n < 3; n++) expect(await create(member, { success_count: 9 })).toEqual([200, { id }]);
    for (let n = 0; n < 3; n++)
      expect(await create(admin, { failure_count: 1e9, success_count: 0 })).toEqual([200, { id }]);
    expect(await list()).toMatchObject([{ success_count: 7, failure_count: 2e9, uses: 0, version: 1 }]);
  });

  test('a candidate is trusted once an admin key sends the same', async () => {
    const { admin, member, list } = await aRegistry();
    const [, { id }] = await create(member);
    expect(await create(admin)).toEqual([200, { id }]);
    expect(await list()).toMatchObject([{ id, trust: 'trusted' }]);
  });

  test('answer what Capstan has stored itself, without counting it again', async () => {
    const { projectId, admin, list } = await aRegistry();
    const id = await api.db.transaction((trx) =>
      learnSkill(trx, {
        project_id: projectId,
        job_type: 'tts',
        escalation_id: null,
        signals: ['cap:tts'],
        error: 'rate must be 44100',
        fingerprint: 'f',
        from_level: 1,
        instructions: 'Write 44100',
        trust: 'trusted',
        correction: null,
      }),
    );
    const [candidate] = await list();
    expect(candidate).toMatchObject({ id, source: 'escalation-l1' });
    expect(await readJson(admin('/skills', { body: candidate }))).toEqual([200, { id }]);
    expect(await list()).toEqual([candidate]);
  });

  test.each<[string, object, string, RegExp]>([
    ['a zero-width space', { instructions: 'a\u200bb' }, '/instructions', /U\+200B at character 1/],
    ['a bidirectional override', { template: 'a\u202eb' }, '/template', /U\+202E/],
    ['a control character in the source', { source: 'a\u001b[2J' }, '/source', /U\+001B/],
    [
      'a tag character in a signal',
      { pattern: { job_type: 't', repo_signals: ['x', 'a\u{e0041}'] } },
      '/pattern/repo_signals/1',
      /U\+E0041/,
    ],
    ['4,001 characters', { instructions: 'x'.repeat(4_001) }, '/instructions', /4000/],
    [
      'a pattern that does not parse',
      { pattern: { job_type: 't', error_patterns: ['ok', '(a'] } },
      '/pattern/error_patterns/1',
      /missing closing \)/,
    ],
    [
      'a lookahead',
      { pattern: { job_type: 't', error_patterns: ['(?=a)b'] } },
      '/pattern/error_patterns/0',
      /unsupported/,
    ],
    [
      'a pattern for everything',
      { pattern: { job_type: 't', error_patterns: ['.*'] } },
      '/pattern/error_patterns/0',
      /empty string/,
    ],
    [
      'a pattern that explodes',
      { pattern: { job_type: 't', error_patterns: ['((a{9}b){9}c){9}d{400}'] } },
      '/pattern/error_patterns/0',
      /1000 instructions/,
    ],
    [
      'six patterns',
      { pattern: { job_type: 't', error_patterns: Array(6).fill('a') } },
      '/pattern/error_patterns',
      /<=5/,
    ],
    ['a template that is no JSON', { template: '[{"op": ' }, '/template', /has to be JSON/],
    [
      'an unguarded patch',
      { template: '[{"op":"replace","path":"/rate","value":1}]' },
      '/template',
      /needs a test/,
    ],
    [
      'a path to a prototype',
      { template: '[{"op":"add","path":"/__proto__/x","value":1}]' },
      '/template',
      /__proto__/,
    ],
    ['an unknown filter', { template: '{{ input.rate | shell }}' }, '/template', /shell/],
    ['no source', { source: undefined }, '/source', /./],
  ])('refuse %s', async (_, changes, pointer, message) => {
    const [status, problem] = (await create(api.call, changes)) as unknown as [number, Problem];
    expect(status).toBe(422);
    expect(problem.errors).toEqual([
      expect.objectContaining({ pointer, message: expect.stringMatching(message) }),
    ]);
  });

  test('lose no time to an accepted pattern, however hostile', async () => {
    const { projectId, admin } = await aRegistry();
    const hostile = [
      '(a+)+$b',
      '(x+x+)+y',
      '(?s).*?a.{300}[zq]',
      '(?i)(?:\\pL|\\pN|.){1,20}[z!]q',
      '(?<g>.*).*.*.*[bc]q',
    ];
    const [status] = await create(admin, { pattern: { job_type: 'tts', error_patterns: hostile } });
    expect(status).toBe(201);
    const { match } = createSkillMatcher({ db: api.db });
    const times: number[] = [];
    for (const error of ['a'.repeat(100_000), 'ab'.repeat(50_000), 'xé😀a'.repeat(20_000)]) {
      const spentMs = countProcessorMs();
      await match({ project_id: projectId, job_type: 'tts', signals: [], error });
      times.push(spentMs());
    }
    expect(Math.min(...times)).toBeLessThan(1_000);
  });

  test.each(['signals=%00', 'job_type=a%E2%80%8B', 'state=gone', 'limit=5'])('refuse ?%s', async (query) => {
    expect((await api.call(`/skills?${query}`)).status).toBe(422);
  });

  test.each(['%00', 'a%E2%80%8B', '%F0%9F', 'x'.repeat(200)])('know no skill %s', async (id) => {
    expect((await api.call(`/skills/${id}`)).status).toBeLessThan(500);
  });

  test('need their scopes', async () => {
    const reader = { authorization: `Bearer ${await api.createKey({ scopes: ['skill:read'] })}` };
    expect((await api.call('/skills', { headers: reader })).status).toBe(200);
    expect((await api.call('/skills', { headers: reader, body: aRequest() })).status).toBe(403);
    const other = { authorization: `Bearer ${await api.createKey({ scopes: ['run:read'] })}` };
    expect((await api.call('/skills', { headers: other })).status).toBe(403);
    expect((await api.call('/v1/audit', { headers: reader })).status).toBe(403);
  });
});

describe('a skill', () => {
  test('of another project is as one that does not exist', async () => {
    const [one, other] = [await aRegistry(), await aRegistry()];
    const [, { id }] = await create(one.admin);
    for (const [path, options] of [
      ['', {}],
      ['/uses', {}],
      ['', { method: 'PATCH', body: { instructions: 'x' } }],
      ['/retire', { method: 'POST' }],
    ] as const) {
      const [status, foreign] = await readJson(other.admin(`/skills/${id}${path}`, options));
      const [, missing] = await readJson(other.admin(`/skills/skl_none${path}`, options));
      expect(status).toBe(404);
      const shown = ({ detail, instance, request_id, ...rest }: Problem) => ({
        ...rest,
        detail: detail.replace(id, 'skl_none'),
      });
      expect(shown(foreign)).toEqual(shown(missing));
    }
    expect(await other.list()).toEqual([]);
    expect(await create(other.admin)).toEqual([201, { id: expect.not.stringContaining(id) }]);
    expect(await one.list()).toMatchObject([{ id, state: 'active', version: 1 }]);
    const audit = await readJson<{ items: AuditEntry[] }>(other.admin(`/v1/audit?subject=${id}`));
    expect(audit[1].items).toEqual([]);
  });

  test('changes by versions, which are kept', async () => {
    const { admin } = await aRegistry();
    const template = '[{"op":"test","path":"/a","value":1},{"op":"remove","path":"/a"}]';
    const [, { id }] = await create(admin, { template });
    const [, second] = await patch(admin, id, { pattern: { error_patterns: ['rate'] }, template: null });
    const pattern = { ...aRequest().pattern, error_patterns: ['rate'] };
    expect(second).toMatchObject({ id, version: 2, pattern, instructions: aRequest().instructions });
    expect(second).not.toHaveProperty('template');
    await patch(admin, id, { instructions: 'other' });
    const versions = await api.db('skill_version').where({ skill_id: id }).orderBy('version');
    expect(versions).toMatchObject([
      { version: 1, error_patterns: ['rate must be'], template },
      { version: 2, error_patterns: ['rate'], template: null },
      { version: 3, error_patterns: ['rate'], instructions: 'other' },
    ]);
    expect((await patch<Problem>(admin, id, { instructions: 'a\u200b' }))[0]).toBe(422);
    expect((await patch<Problem>(admin, id, {}))[0]).toBe(422);
    expect((await patch<Problem>(admin, id, { pattern: { error_patterns: ['x*'] } }))[0]).toBe(422);
  });

  test('cannot be changed into a copy of another', async () => {
    const { admin } = await aRegistry();
    await create(admin);
    const [, { id }] = await create(admin, { instructions: 'other' });
    const [status, problem] = await patch<Problem>(admin, id, { instructions: aRequest().instructions });
    expect([status, problem.code]).toEqual([409, 'state_conflict']);
  });

  test('that a key without admin changes is vouched for no more', async () => {
    const { admin, member } = await aRegistry();
    const [, { id }] = await create(admin);
    expect((await patch<Problem>(member, id, { trust: 'trusted' }))[0]).toBe(403);
    expect((await patch(member, id, { instructions: 'mine' }))[1]).toMatchObject({ trust: 'candidate' });
    expect((await patch(admin, id, { trust: 'trusted' }))[1]).toMatchObject({ trust: 'trusted', version: 3 });
  });

  test('that is changed or retired is flagged no more, and its review is over', async () => {
    const { projectId, admin, list } = await aRegistry();
    const states = async (skill_id: string) =>
      (await api.db('review').where({ skill_id }).orderBy('review_id')).map(({ state }) => state);
    const flag = async (skill_id: string) => {
      await flagSkill(api.db, skill_id);
      await api.db('review').insert({
        review_id: newId('review'),
        project_id: projectId,
        kind: 'skill',
        reason: 'x',
        skill_id,
        due_at: new Date(Date.now() + 1e6),
        payload: '{}',
      });
    };
    const [, { id }] = await create(admin);
    await flag(id);
    expect(await list()).toMatchObject([{ id, flagged: true }]);
    expect((await patch(admin, id, { instructions: 'better' }))[1]).toMatchObject({ flagged: false });
    expect(await states(id)).toEqual(['cancelled']);
    await flag(id);
    for (let n = 0; n < 2; n++) {
      const retired = await readJson<Skill>(admin(`/skills/${id}/retire`, { method: 'POST' }));
      expect(retired).toEqual([
        200,
        expect.objectContaining({ id, state: 'retired', flagged: false, version: 2 }),
      ]);
    }
    expect(await states(id)).toEqual(['cancelled', 'cancelled']);
    expect(await list()).toEqual([]);
    expect(await list('?state=retired')).toMatchObject([{ id }]);
    expect((await readJson<Skill>(admin(`/skills/${id}`)))[1]).toMatchObject({ id, state: 'retired' });
    expect((await patch<Problem>(admin, id, { instructions: 'x' }))[0]).toBe(409);
  });

  test('shows its uses in pages, newest first', async () => {
    const { projectId, admin } = await aRegistry();
    const [, { id }] = await create(admin);
    for (const [transition, outcome] of (['success', 'failure', 'neutral'] as const).entries()) {
      const uses = [{ skill_id: id, version: 1, level: transition, outcome }];
      await addSkillUses(api.db, {
        project_id: projectId,
        occasion: { escalation_id: 'esc_1', transition },
        uses,
      });
    }
    interface Page {
      readonly items: SkillUse[];
      readonly next_cursor: string | null;
    }
    const [, first] = await readJson<Page>(admin(`/skills/${id}/uses?limit=2`));
    const [, second] = await readJson<Page>(admin(`/skills/${id}/uses?limit=2&cursor=${first.next_cursor}`));
    expect([...first.items, ...second.items].map(({ outcome }) => outcome)).toEqual([
      'neutral',
      'failure',
      'success',
    ]);
    expect(second.next_cursor).toBeNull();
    expect(second.items[0]).toEqual({
      use_id: expect.stringMatching(/^\d+$/),
      skill_id: id,
      version: 1,
      escalation_id: 'esc_1',
      level: 0,
      outcome: 'success',
      at: expect.any(String),
    });
    expect((await admin(`/skills/${id}/uses?cursor=bm9uZQ`)).status).toBe(422);
    expect((await readJson<Skill>(admin(`/skills/${id}`)))[1]).toMatchObject({
      success_count: 2,
      failure_count: 1,
      uses: 2,
    });
  });
});

test('every change is in the audit of its project', async () => {
  const { admin, member } = await aRegistry();
  const [, { id }] = await create(admin);
  await create(admin);
  await patch(member, id, { instructions: 'mine' });
  await admin(`/skills/${id}/retire`, { method: 'POST' });
  await create(admin, { instructions: 'another' });
  const [, page] = await readJson<{ items: AuditEntry[]; next_cursor: string | null }>(
    admin(`/v1/audit?subject=${id}&limit=3`),
  );
  expect(page.items.map(({ action, data }) => [action, data])).toEqual([
    ['skill.retired', {}],
    ['skill.revised', { version: 2, trust: 'candidate' }],
    ['skill.sent_again', { source: 'human-fix', trust: 'trusted', counted: true }],
  ]);
  const rest = await readJson<{ items: AuditEntry[] }>(
    admin(`/v1/audit?subject=${id}&cursor=${page.next_cursor}`),
  );
  expect(rest[1].items).toMatchObject([
    { action: 'skill.created', subject: id, actor: expect.stringMatching(/^key_/) },
  ]);
  expect((await admin('/v1/audit?subject=%00')).status).toBe(422);
});
