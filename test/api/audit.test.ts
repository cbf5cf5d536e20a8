/** The audit log: as pages, as one stream, and as lines of the log. */

import type { AuditEntry } from '@capstan/core/contracts/access';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { insertAudits, listenToAudits } from '../../src/db/access/audit.ts';
import { readJson, startTestApi, type TestApi } from '../support/api.ts';
import { waitFor } from '../support/wait.ts';

let api: TestApi;
beforeAll(async () => {
  api = await startTestApi();
});
afterAll(() => api.close());

const headers = { accept: 'application/x-ndjson' };

async function exported(query = '', as: Record<string, string> = {}): Promise<readonly AuditEntry[]> {
  const answer = await api.call(`/v1/audit${query}`, { headers: { ...headers, ...as } });
  expect(answer.headers.get('content-type')).toBe('application/x-ndjson');
  const lines = (await answer.text()).split('\n');
  expect(lines.pop()).toBe('');
  return lines.map((line) => JSON.parse(line));
}

function many(count: number, subject: string) {
  const entry = { project_id: api.projectId, actor: 'test', action: 'thing.done', subject };
  return insertAudits(
    api.db,
    Array.from({ length: count }, (_, at) => ({ ...entry, data: { at } })),
  );
}

test('the audit log is exported whole, oldest first, a page after another', async () => {
  await many(2_300, 'many');
  const entries = await exported('?subject=many');
  expect(entries.map(({ data }) => data.at)).toEqual(Array.from({ length: 2_300 }, (_, at) => at));
});

test('the audit log is exported for a time, without its end', async () => {
  const [first] = await exported();
  const from = first?.at ?? '';
  const to = new Date(Date.parse(from) + 1).toISOString();
  expect((await exported(`?from=${from}&to=${to}`)).every(({ at }) => at === from)).toBe(true);
  expect(await exported(`?to=${from}`)).toEqual([]);
  expect((await api.call('/v1/audit?from=yesterday', { headers })).status).toBe(422);
});

test('an audit log is of the own project alone, and for admins', async () => {
  const { apiKey } = await api.createProject('other');
  const theirs = await exported('', { authorization: `Bearer ${apiKey}` });
  expect(theirs.map(({ action }) => action)).toEqual(['project.created', 'key.created']);
  const weak = await api.createKey({ scopes: ['run:read'] });
  const answer = await api.call('/v1/audit', { headers: { ...headers, authorization: `Bearer ${weak}` } });
  expect(answer.status).toBe(403);
});

test('an audit entry is a line of the log, when it is committed and not before', async () => {
  const lines = () => api.log.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'audit');
  const body = { url: 'http://10.0.0.7:9000/hook', events: ['run.ended'] };
  const [, { webhook_id }] = await readJson<{ webhook_id: string }>(api.call('/v1/webhooks', { body }));
  const line = await waitFor('the line', async () =>
    lines().find(({ audit }) => audit.subject === webhook_id),
  );
  expect(line.audit).toMatchObject({ action: 'webhook.created', project_id: api.projectId });
});

test('an audit entry is reported when it is committed, and not when it is rolled back', async () => {
  const told: string[] = [];
  const { db } = api;
  listenToAudits(db, ({ subject }) => told.push(subject));
  const entry = { project_id: null, actor: 'test', action: 'thing.done', data: {} };
  const kept = db.transaction(async (trx) => {
    await insertAudits(trx, [{ ...entry, subject: 'kept' }]);
    expect(told).toEqual([]);
  });
  const refused = db.transaction(async (trx) => {
    await insertAudits(trx, [{ ...entry, subject: 'refused' }]);
    throw new Error('no');
  });
  await kept;
  await expect(refused).rejects.toThrow('no');
  await insertAudits(db, [{ ...entry, subject: 'alone' }]);
  await waitFor('both', async () => told.length >= 2);
  expect(told.toSorted()).toEqual(['alone', 'kept']);
});
