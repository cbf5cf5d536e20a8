/** Files that go in, and others who are told. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { Job } from '../../../src/contracts/media.ts';
import type { Run } from '../../../src/contracts/run.ts';
import type { Capstan } from '../../support/capstan.ts';
import { makeFilm } from '../support/ffmpeg.ts';
import type { Visit } from './editor-stories.ts';

const withFile = `pipeline: from-file
version: "1.0"
job_schema:
  type: object
  required: [clip]
  properties:
    clip: { type: string, pattern: "^media://" }
steps:
  - id: trim
    capability: trim
    input: { clip: "{{ job.clip }}" }
`;

/** @returns the statuses of what is answered for media, as they come */
function listenForMedia(page: Page): number[] {
  const statuses: number[] = [];
  page.on('response', (response) => {
    if (new URL(response.url()).pathname.startsWith('/v1/media/')) statuses.push(response.status());
  });
  return statuses;
}

/** What is asked of an `HTMLVideoElement`. */
interface Film {
  readonly readyState: number;
  readonly ended: boolean;
  play(): Promise<void>;
}

/** @throws Error when the browser cannot play it */
async function playToEnd(film: Locator): Promise<void> {
  const play = (video: Film) => video.play();
  await film.evaluate(play);
  const look = (video: Film) => ({ hasFrame: video.readyState >= 2, ended: video.ended });
  await expect.poll(() => film.evaluate(look), { timeout: 60_000 }).toEqual({ hasFrame: true, ended: true });
}

export function tellProjectStories(visit: Visit, capstan: () => Capstan): void {
  test('a film of this machine is uploaded where a run asks for one, and plays in what the run gives', async () => {
    const { request } = capstan();
    await request('POST', '/v1/pipelines', withFile, { 'content-type': 'application/yaml' });
    const opened = await visit();
    const { page } = opened;
    await opened.go('/pipelines/from-file');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    const buffer = await makeFilm();
    await page
      .getByLabel('A file for clip')
      .setInputFiles({ name: 'my clip.mp4', mimeType: 'video/mp4', buffer });
    await page.getByText(/^[\d.]+ kB, video\/mp4$/).waitFor();
    await page.getByRole('button', { name: 'Start the run' }).click();
    await opened.arrive(/\/ui\/runs\/run_/);
    const { body: run } = await request<Run>('GET', `/v1${new URL(page.url()).pathname.slice('/ui'.length)}`);
    const { body } = await request<Job>('GET', `/v1/jobs/${run.job_id}`);
    expect(body.job.clip).toMatch(/^media:\/\/job_[\w-]+\/my-clip\.mp4$/);
    await capstan().ended(run.run_id);
    const statuses = listenForMedia(page);
    await opened.go(`/runs/${run.run_id}?view=output`);
    await page.getByRole('button', { name: 'play' }).click();
    const film = page.locator('video');
    await film.waitFor();
    await playToEnd(film);
    // Asked for in parts, so that it can be wound before it is all there.
    expect(statuses).not.toEqual([]);
    expect(statuses.filter((status) => status !== 206)).toEqual([]);
    opened.expectQuiet();
    await opened.close();
  });

  test('an address is told of what happens, tried from the page, and forgotten', async () => {
    const told: string[] = [];
    const server = createServer((incoming, answer) => {
      told.push(String(incoming.headers['webhook-id']));
      answer.writeHead(204).end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
    const opened = await visit();
    const { page } = opened;
    await opened.go('/settings?tab=webhooks');
    await page.getByLabel('Address').fill(url);
    await page.getByLabel('a person is asked').check();
    await page.getByRole('button', { name: 'Add it' }).click();
    await page.getByText('It is shown once.').waitFor();
    await page.getByRole('button', { name: `Test ${url}` }).click();
    await page.getByRole('status').getByText('delivered, answered 204').waitFor();
    await page.getByRole('button', { name: `Deliveries to ${url}` }).click();
    await page.getByRole('list', { name: 'Deliveries' }).getByText('test', { exact: true }).waitFor();
    expect(told).toHaveLength(1);
    expect(await opened.axe()).toEqual([]);
    await page.getByRole('button', { name: `Remove ${url}` }).click();
    await page.getByText('Nobody is told yet').waitFor();
    opened.expectQuiet();
    await opened.close();
    server.close();
  });
}
