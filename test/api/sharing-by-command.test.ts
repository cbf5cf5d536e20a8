/** `capstan fleet share` and `unshare` against the real API: whom the instance serves afterwards, and who may decide it. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCapstan } from '../../src/cli/program.ts';
import { aShell } from '../cli/support/shell.ts';
import { startTestApi, type TestApi } from '../support/api.ts';
import { execOn, registerInstance } from '../support/direct-calls.ts';

interface Tenant {
  readonly projectId: string;
  readonly apiKey: string;
}

let api: TestApi;
let owner: Tenant;
let second: Tenant;
let third: Tenant;

beforeAll(async () => {
  api = await startTestApi();
  const key = await api.createKey({ scopes: ['admin'], projects: [api.projectId] });
  owner = { projectId: api.projectId, apiKey: key };
  [second, third] = [await api.createProject('second'), await api.createProject('third')];
});
afterAll(() => api.close());

/** A command of a tenant's. The router knows what it has changed when this resolves. */
async function capstan(by: Pick<Tenant, 'apiKey'>, ...words: readonly string[]) {
  const { shell, seen } = aShell();
  await runCapstan([...words, '--url', api.url, '--key', by.apiKey], shell);
  await api.refreshFleet();
  return seen;
}

/** The statuses with which the three projects are answered. */
async function answersOf(name: string): Promise<readonly number[]> {
  const statuses: number[] = [];
  for (const { apiKey } of [owner, second, third]) {
    const headers = { authorization: `Bearer ${apiKey}` };
    statuses.push((await execOn(api, name, { headers })).status);
  }
  return statuses;
}

test('fleet share lets projects call it, named or all, and fleet unshare takes that back', async () => {
  const { endpoint } = await registerInstance(api, { name: 'lent', shared_with: [] });
  expect(await answersOf('lent')).toEqual([200, 404, 404]);
  const named = await capstan(owner, 'fleet', 'share', 'lent', '--with', second.projectId);
  expect(named.stdout).toBe(`lent ${endpoint}: ${owner.projectId}, shared with ${second.projectId}\n`);
  expect(await answersOf('lent')).toEqual([200, 200, 404]);
  const shown = (await capstan(second, 'fleet')).stdout;
  expect(shown).toContain(`${owner.projectId}, shared with ${second.projectId}`);
  const replaced = await capstan(owner, 'fleet', 'share', endpoint, '--with', third.projectId);
  expect(replaced.stdout).toContain(`shared with ${third.projectId}`);
  expect(await answersOf('lent')).toEqual([200, 404, 200]);
  const both = ['--with', second.projectId, '--with', third.projectId];
  await capstan(owner, 'fleet', 'share', endpoint, '--capability', 'lent', ...both);
  expect(await answersOf('lent')).toEqual([200, 200, 200]);
  expect((await capstan(third, 'fleet')).stdout).not.toContain(second.projectId);
  const none = await capstan(owner, 'fleet', 'unshare', 'lent');
  expect(none.stdout).toBe(`lent ${endpoint}: ${owner.projectId}\n`);
  expect(await answersOf('lent')).toEqual([200, 404, 404]);
  const all = await capstan(owner, 'fleet', 'share', 'lent', '--with', second.projectId, '--with', 'all');
  expect(all.stdout).toBe(`lent ${endpoint}: ${owner.projectId}, shared with all\n`);
  expect(await answersOf('lent')).toEqual([200, 200, 200]);
});

test('a name stands for all instances of it, an endpoint for one', async () => {
  const [one, two] = [
    await registerInstance(api, { name: 'pair', shared_with: [] }),
    await registerInstance(api, { name: 'pair', shared_with: [] }),
  ];
  const lines = async (...words: string[]) =>
    (await capstan(owner, 'fleet', ...words)).stdout.split('\n').filter((line) => line !== '');
  expect(await lines('share', 'pair', '--with', 'all')).toHaveLength(2);
  expect(await lines('unshare', one.endpoint)).toEqual([`pair ${one.endpoint}: ${owner.projectId}`]);
  const { instances } = (await (await api.call('/v1/capabilities/pair')).json()) as {
    instances: { endpoint: string; shared_with: unknown }[];
  };
  const shares = Object.fromEntries(instances.map(({ endpoint, shared_with }) => [endpoint, shared_with]));
  expect(shares).toEqual({ [one.endpoint]: [], [two.endpoint]: 'all' });
});

test.each([
  ['a name that the project has no instance of', 'absent', 'has no instance of absent'],
  ['an endpoint that is none', 'http://127.0.0.1:9', 'is no endpoint and no capability'],
])('%s is refused with what was seen', async (_, instance, words) => {
  for (const act of [
    ['share', instance, '--with', 'all'],
    ['unshare', instance],
  ]) {
    const { stderr, exitCode } = await capstan(owner, 'fleet', ...act);
    expect([stderr, exitCode]).toEqual([expect.stringContaining(words), 1]);
  }
});

test('only the owner of an instance, or an operator, decides about its sharing', async () => {
  const { endpoint } = await registerInstance(api, { name: 'kept', shared_with: [second.projectId] });
  const refused = await capstan(second, 'fleet', 'share', endpoint, '--with', 'all');
  expect([refused.stderr, refused.exitCode]).toEqual([expect.stringContaining('only its owner'), 1]);
  const at = [endpoint, '--capability', 'kept'];
  for (const words of [
    ['unshare', ...at],
    ['share', ...at, '--with', 'all'],
    ['share', 'kept', '--with', third.projectId],
  ]) {
    const hidden = await capstan(third, 'fleet', ...words);
    expect([hidden.stderr, hidden.exitCode]).toEqual([expect.stringContaining('no instance of kept'), 1]);
  }
  const operator = await capstan(api, 'fleet', 'unshare', endpoint, '--json');
  expect(JSON.parse(operator.stdout)).toMatchObject({ items: [{ endpoint, shared_with: [] }] });
  expect(await answersOf('kept')).toEqual([200, 404, 404]);
});
