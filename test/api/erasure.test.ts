/** Who may erase a project, and the answers of the API about one that is being erased. */

import type { Erasure } from '@capstan/core/contracts/access';
import type { Problem } from '@capstan/core/contracts/problem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi({}, { keyTrustMs: 0 });
});
afterAll(() => api.close());

const definition = { pipeline: 'small', version: '1', steps: [{ id: 'wait', wait: '1h' }] };

function as(key: string, project?: string) {
  return { authorization: `Bearer ${key}`, ...(project === undefined ? {} : { 'x-project-id': project }) };
}

function erase(id: string, key = api.apiKey) {
  return readJson<Erasure & Problem>(api.call(`/v1/projects/${id}`, { method: 'DELETE', headers: as(key) }));
}

function look(id: string, key = api.apiKey) {
  return readJson<Erasure & Problem>(api.call(`/v1/projects/${id}/erasure`, { headers: as(key) }));
}

async function countBegun(): Promise<number> {
  return (await api.db('erasure').select('pseudonym')).length;
}

async function statusOf(path: string, headers: Record<string, string>): Promise<number> {
  return (await api.call(path, { headers })).status;
}

describe('callers without the right', () => {
  test.each(['admin', 'run:read', 'capability:register'] as const)(
    'a key with the scope %s cannot discover whether a project exists',
    async (scope) => {
      const { projectId } = await api.createProject('foreign');
      const own = await api.createKey({ scopes: [scope] });
      const tellWithout = async (id: string) =>
        [await erase(id, own), await look(id, own)].map(([status, { code, detail }]) => [
          status,
          code,
          detail.replaceAll(id, 'ID'),
        ]);
      const told = await tellWithout(projectId);
      expect(told.map(([status]) => status)).toEqual([403, 403]);
      expect(await tellWithout('prj_01000000-0000-7000-8000-000000000000')).toEqual(told);
      expect(await tellWithout(api.projectId)).toEqual(told);
    },
  );

  test('a request without a key, or with one of another server', async () => {
    const { projectId } = await api.createProject('foreign');
    expect((await erase(projectId, ''))[0]).toBe(401);
    expect((await erase(projectId, `${api.apiKey}x`))[0]).toBe(401);
  });

  test('an operator may erase neither the default project nor the only one of the key', async () => {
    const { projectId } = await api.createProject('alone');
    const alone = await api.createKey({ scopes: ['operator'], projects: [projectId] });
    const begun = await countBegun();
    expect(await erase(api.projectId)).toMatchObject([409, { code: 'state_conflict' }]);
    expect(await erase(projectId, alone)).toMatchObject([409, { code: 'state_conflict' }]);
    expect(await countBegun()).toBe(begun);
  });

  test.each([
    'prj_x',
    '%27%3Bdrop%20table%20run',
    '..%2F..%2Fkeys',
    '%E2%98%83',
    '%00',
    'x'.repeat(200),
    '*',
    '%25',
  ])('an id like %s is no project, and no fault', async (id) => {
    const begun = await countBegun();
    const [[status], [looked]] = [await erase(id), await look(id)];
    expect([404, 422]).toContain(status);
    expect(looked).toBe(status);
    expect(await countBegun()).toBe(begun);
  });

  test('a question that is asked as if it were harmless', async () => {
    const { projectId } = await api.createProject('asked');
    expect(await erase(`${projectId}?dry_run=true`)).toMatchObject([422, { code: 'request_invalid' }]);
    expect((await look(projectId))[1].state).toBe('none');
  });
});

describe('a project that is being erased', () => {
  test('twice at once is one erasure, with one line in the audit log', async () => {
    const { projectId } = await api.createProject('twice');
    const answers = await Promise.all(Array.from({ length: 5 }, () => erase(projectId)));
    const [first] = answers;
    for (const [status, body] of answers)
      expect([status, body.pseudonym]).toEqual([202, first?.[1].pseudonym]);
    const acts = await api.db('audit').where({ action: 'project.erased', subject: first?.[1].pseudonym });
    expect(acts).toHaveLength(1);
    expect(await look(projectId)).toMatchObject([200, { state: 'erasing', finished_at: null }]);
  });

  test('is out for its keys at once, and for those that hold another one it alone', async () => {
    const { projectId, apiKey } = await api.createProject('out');
    const both = await api.createKey({ scopes: ['admin'], projects: [projectId, api.projectId] });
    const [, run] = await readJson<{ run_id: string }>(
      api.call('/v1/runs', { headers: as(apiKey), body: { definition, job: {} } }),
    );
    await erase(projectId);
    expect(await statusOf('/v1/runs', as(apiKey))).toBe(401);
    expect(await statusOf('/v1/runs', as(both, projectId))).toBe(403);
    expect(await statusOf('/v1/runs', as(both))).toBe(200);
    expect(await statusOf(`/v1/runs/${run.run_id}`, as(both))).toBe(404);
    expect(await statusOf(`/v1/runs/${run.run_id}`, as(api.apiKey, projectId))).toBe(403);
    const listed = await readJson<{ items: { project_id: string }[] }>(api.call('/v1/projects?limit=200'));
    expect(listed[1].items.map(({ project_id }) => project_id)).not.toContain(projectId);
  });

  test('accepts no work of keys that are still trusted, and gives the reason', async () => {
    const { projectId, apiKey } = await api.createProject('late');
    await api.call('/v1/pipelines', { headers: as(apiKey), body: definition });
    await api.db('project').where({ project_id: projectId }).update({ erasing_since: new Date() });
    const asked = [
      ['/v1/runs', { definition, job: {} }],
      ['/v1/runs', { pipeline: 'small', job: {} }],
      ['/v1/runs/bulk', { runs: [{ pipeline: 'small', job: {} }] }],
      ['/v1/jobs', { job: {} }],
      ['/v1/schedules', { name: 'n', pipeline: 'small', cron: '@daily', job: {} }],
      ['/v1/escalations', { job_type: 'x', prompt: 'x' }],
      ['/v1/keys', { name: 'n', scopes: ['run:read'], projects: [projectId] }],
    ] as const;
    for (const [path, body] of asked) {
      const [status, problem] = await readJson(api.call(path, { headers: as(apiKey), body }));
      expect([path, status, problem.code]).toEqual([path, 409, 'state_conflict']);
      expect(problem.detail).toContain('is being erased');
    }
    expect(await api.db('run').where({ project_id: projectId })).toEqual([]);
    expect(await api.db('job').where({ project_id: projectId })).toEqual([]);
  });
});
