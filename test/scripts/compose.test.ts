import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { ComposeProject, isTask, orderServices } from '../../scripts/compose/project.ts';
import { findFaults } from '../../scripts/compose/rules.ts';
import { ownServerSettings } from '../../src/dev/temporal/server.ts';
import { root } from '../docs/documents.ts';

const file = parse(readFileSync(join(root, 'compose.yaml'), 'utf8'), { merge: true });

const good = {
  image: 'capstan:0.1.0',
  user: '10001:10001',
  read_only: true,
  environment: { DATABASE_PASSWORD_FILE: '/run/secrets/password', PUBLIC_URL: 'http://localhost' },
  healthcheck: { test: ['CMD', 'true'] },
  restart: 'unless-stopped',
  cap_drop: ['ALL'],
  security_opt: ['no-new-privileges:true'],
  logging: { driver: 'local' },
  ports: [{ host_ip: '127.0.0.1', published: '7400' }],
};

function faultsOf(change: object): readonly string[] {
  return findFaults(ComposeProject.parse({ services: { one: { ...good, ...change } } }));
}

test('a service that keeps all rules has no fault', () => {
  expect(faultsOf({})).toEqual([]);
});

test.each([
  ['image', { image: 'postgres:latest' }, /no fixed version/],
  ['image', { image: 'temporalio/server' }, /no fixed version/],
  ['image', { image: 'postgres:18' }, /no fixed version/],
  ['environment', { environment: { POSTGRES_PASSWORD: 'capstan' } }, /secret .* POSTGRES_PASSWORD/],
  ['restart', { restart: 'no' }, /restart is no/],
  ['healthcheck', { healthcheck: undefined }, /no healthcheck/],
  ['depends_on', { depends_on: { two: { condition: 'service_started' } } }, /only for the start of two/],
  ['security_opt', { security_opt: [] }, /no-new-privileges/],
  ['cap_drop', { cap_drop: [] }, /keeps capabilities/],
  ['user', { user: 'root' }, /not the user 10001/],
  ['logging', { logging: undefined }, /grows without a limit/],
  ['ports', { ports: [{ published: '7400' }] }, /all networks/],
  ['volumes', { volumes: [{ type: 'bind', source: '/x', target: '/x' }] }, /folder of the machine/],
] as const)('a service with a wrong %s is refused: %j', (_, change, fault) => {
  expect(faultsOf(change)).toEqual([expect.stringMatching(fault)]);
});

test('services start after those that they depend on, and those of a profile never', () => {
  const depends = (name: string, condition: string) => ({ depends_on: { [name]: { condition } } });
  const services = {
    server: { image: 'a', ...depends('setup', 'service_completed_successfully') },
    tools: { image: 'a', profiles: ['tools'] },
    setup: { image: 'a', ...depends('postgres', 'service_healthy') },
    postgres: { image: 'a' },
  };
  const project = ComposeProject.parse({ services });
  expect(orderServices(project)).toEqual(['postgres', 'setup', 'server']);
  expect(Object.keys(services).filter((name) => isTask(name, project))).toEqual(['setup']);
});

test('the images have the versions of this package and of the cluster', () => {
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const cluster = readFileSync(join(root, 'scripts/cluster/programs.ts'), 'utf8');
  const [, temporal] = /temporal = \{ version: '([^']+)'/.exec(cluster) ?? [];
  const images = new Set(Object.values<{ image: string }>(file.services).map(({ image }) => image));
  expect([...images].sort()).toEqual([
    `capstan:${version}`,
    'postgres:18.4-bookworm',
    `temporalio/admin-tools:${temporal}`,
    `temporalio/server:${temporal}`,
  ]);
});

test("Temporal has the settings of a server of Capstan's own", () => {
  const written: Record<string, { value: unknown }[]> = parse(
    readFileSync(join(root, 'deploy/compose/dynamic.yaml'), 'utf8'),
  );
  const values = Object.entries(written).map(([name, [entry]]) => [name, entry?.value]);
  const own = Object.entries(ownServerSettings).map(([name, value]) => [name, parse(String(value))]);
  expect(Object.fromEntries(values)).toEqual(Object.fromEntries(own));
});
