/**
 * That an instance is shared and taken back on its page, and that the pages of other projects follow by themselves. That a
 * host whose slots instances share is drained and undrained, and what instances have loaded.
 */

import type { CapabilityDetail, SharedWith } from '@capstan/core/contracts/capability';
import { expect, test } from 'vitest';
import { type Instance, startInstance } from '../../../../test/support/fleet.ts';
import { waitFor } from '../../../../test/support/wait.ts';
import { useSharedStudio } from '../support/studio.ts';

const visitors = useSharedStudio();

interface Tenant {
  readonly projectId: string;
  readonly key: string;
}

async function aTenant(name: string): Promise<Tenant> {
  const { request } = visitors.studio.capstan;
  const { body: project } = await request<{ project_id: string }>('POST', '/v1/projects', { name });
  const asked = { name, scopes: ['admin'], projects: [project.project_id] };
  const { body } = await request<{ key: string }>('POST', '/v1/keys', asked);
  return { projectId: project.project_id, key: body.key };
}

async function sharesOf(name: string): Promise<SharedWith | undefined> {
  const { read } = visitors.studio.capstan;
  return (await read<CapabilityDetail>(`/v1/capabilities/${name}`)).instances[0]?.shared_with;
}

async function lend(name: string, shared_with: SharedWith): Promise<Instance> {
  return startInstance(visitors.studio.capstan, { name, shared_with });
}

test('an instance is shared by its dialog, which shows a refusal, and unshared again', async () => {
  const { projectId } = await aTenant('borrower');
  const instance = await lend('lent-by-hand', []);
  const opened = await visitors.visit({}, /status of 422/);
  const { page } = opened;
  await opened.go('/capabilities/lent-by-hand');
  const write = async (text: string, button: string) => {
    await page.getByRole('button', { name: 'Share …' }).click();
    await page.getByLabel('Other projects').fill(text);
    await page.getByRole('button', { name: button }).click();
  };
  await write('all', 'Change nothing');
  expect(await sharesOf('lent-by-hand')).toEqual([]);
  await write(` ${projectId}, prj_other`, 'Save');
  await page.getByText(`shared with ${projectId}, prj_other`).waitFor();
  expect(await sharesOf('lent-by-hand')).toEqual([projectId, 'prj_other']);
  await page.getByRole('button', { name: 'Share …' }).click();
  expect(await page.getByLabel('Other projects').inputValue()).toBe(`${projectId} prj_other`);
  await page.getByLabel('Other projects').fill('x'.repeat(200));
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('dialog').getByRole('alert').waitFor();
  await page.getByRole('button', { name: 'Change nothing' }).click();
  await write('all', 'Save');
  await page.getByText('shared with all projects').waitFor();
  await write('', 'Save');
  await page.getByText('shared with all projects').waitFor({ state: 'detached' });
  expect(await sharesOf('lent-by-hand')).toEqual([]);
  opened.expectQuiet();
  await opened.close();
  await instance.stop();
});

test('the pages of a project with which it is no longer shared lose it without a reload', async () => {
  const tenant = await aTenant('reader');
  const [whole, part, kept] = [
    await lend('lent-whole', [tenant.projectId]),
    await lend('lent-part', [tenant.projectId]),
    await lend('lent-part', 'all'),
  ];
  const unshare = (name: string, { endpoint }: Instance) =>
    visitors.studio.capstan.request('PUT', `/v1/capabilities/${name}/sharing`, { shared_with: [], endpoint });
  const opened = await visitors.visitAs(tenant.key, { setsClock: true }, /status of 404/);
  const { page } = opened;
  const at = ({ endpoint }: Instance) => page.getByText(endpoint.replace('http://', '')).first();
  await page.clock.install();
  await opened.go('/capabilities/lent-part');
  await at(part).waitFor();
  await at(kept).waitFor();
  expect(await page.getByRole('button', { name: 'Share …' }).count()).toBe(0);
  await unshare('lent-part', part);
  await waitFor('the instance to leave the page', async () => {
    await page.clock.fastForward('00:15');
    return (await at(part).count()) === 0;
  });
  await at(kept).waitFor();
  await opened.walk('/capabilities/lent-whole');
  await at(whole).waitFor();
  await unshare('lent-whole', whole);
  await waitFor('the page to say that there is none', async () => {
    await page.clock.fastForward('00:15');
    return (await page.getByText('No instance has registered lent-whole').count()) === 1;
  });
  await opened.walk('/capabilities');
  await page.getByText('lent-part').first().waitFor();
  expect(await page.getByText('lent-whole').count()).toBe(0);
  opened.expectQuiet();
  await opened.close();
  await Promise.all([whole, part, kept].map((instance) => instance.stop()));
});

test('a host is drained with its instances by its dialog, and undrained again', async () => {
  const instance = await lend('on-a-host', []);
  const { endpoint } = instance;
  const { request, read } = visitors.studio.capstan;
  const urls = { endpoint, spec_url: `${endpoint}/spec`, health_url: `${endpoint}/health` };
  const cost_model = { type: 'free', rate_usd: 0 };
  const facts = { name: 'on-a-host', version: '1.0.0', tags: ['local'], cost_model, ...urls };
  await request('POST', '/v1/capabilities', { ...facts, host: { name: 'gpu-1', slots: 2, memory_gb: 24 } });
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/capabilities');
  const hosts = page.getByRole('region', { name: 'Hosts' });
  await hosts.getByText('0 of 2').waitFor();
  await hosts.getByRole('button', { name: 'Drain …' }).click();
  await page.getByLabel('Reason (optional)').fill('new driver');
  await page.getByRole('button', { name: 'Drain the host' }).click();
  await hosts.getByText(/No new calls: drained by .*: new driver/).waitFor();
  const body = await read<CapabilityDetail>('/v1/capabilities/on-a-host');
  expect(body.instances[0]).toMatchObject({ state: 'draining', drain: { with_host: true } });
  await hosts.getByRole('button', { name: 'Undrain' }).click();
  await hosts.getByRole('button', { name: 'Drain …' }).waitFor();
  opened.expectQuiet();
  await instance.stop();
});

test('an instance shows what it has loaded, and a call that it was found there', async () => {
  const { capstan } = visitors.studio;
  const options = { name: 'loads-models', affinity: '{{ input.model }}', resident: ['sdxl', 'flux'] };
  const instance = await startInstance(capstan, options);
  const exec = () =>
    capstan.request<{ routing: { decision_id: string; candidates: { resident?: boolean }[] } }>(
      'POST',
      '/v1/capabilities/loads-models/exec',
      { input: { model: 'sdxl' } },
    );
  const { body } = await waitFor('its key to be known', async () => {
    const called = await exec();
    return called.body.routing?.candidates[0]?.resident === true ? called : null;
  });
  const opened = await visitors.visit();
  const { page } = opened;
  await opened.go('/capabilities/loads-models');
  await page.getByText('has loaded sdxl, flux').first().waitFor();
  await opened.go(`/decisions/${body.routing.decision_id}`);
  await page.getByText('has it loaded').first().waitFor();
  opened.expectQuiet();
  await instance.stop();
});
