/** A pipeline of the samples over a bucket: its capabilities use the API, or the bucket itself. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Capability, type RunningInstance, readSettings, startInstance } from '@capstan/capability';
import { createMediaTransfer } from '@capstan/capability/media/media-transfer';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { capability as concat } from '../../capabilities/concat/index.ts';
import { locateMediaTools } from '../../capabilities/media-tools/locate.ts';
import { probeMedia } from '../../capabilities/media-tools/probe.ts';
import { capability as thumbnail } from '../../capabilities/thumbnail/index.ts';
import { makeDemoMedia } from '../../src/dev/demo-media.ts';
import { type Capstan, startCapstan } from '../support/capstan.ts';
import { isLong } from '../support/long.ts';
import { type S3Gateway, startS3Gateway } from '../support/s3-gateway.ts';
import { findS3Program } from '../support/s3-program.ts';
import { waitFor } from '../support/wait.ts';

const program = await findS3Program();
const { signal } = new AbortController();

const steps = [
  {
    id: 'join',
    capability: 'concat',
    input: { clips: '{{ job.clips }}', output_path: 'media://{{ run.job_id }}/all.mp4' },
  },
  {
    id: 'cover',
    capability: 'thumbnail',
    depends_on: ['join'],
    input: {
      video: { media_store_path: '{{ steps.join.output.output_path }}' },
      output_path: 'media://{{ run.job_id }}/cover.jpg',
    },
  },
];

describe.skipIf(program.path === null)(`samples over S3 (${program.reason})`, () => {
  let gateway: S3Gateway;
  let capstan: Capstan;
  let folder: string;
  const instances: RunningInstance[] = [];
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'capstan-s3-run-'));
    gateway = await startS3Gateway(program.path ?? '');
    const MEDIA_URL = gateway.mediaUrl('run');
    capstan = await startCapstan({ MEDIA_URL, MEDIA_REDIRECT: 'true', ...gateway.keys });
    const start = async (capability: Capability, mediaUrl: string): Promise<void> => {
      const settings = readSettings({
        ROUTER_URL: capstan.url,
        ROUTER_TOKEN: capstan.key,
        PORT: '0',
        MEDIA_URL: mediaUrl,
      });
      const options = { settings, cacheDir: folder, print: () => undefined };
      instances.push(await startInstance(capability, options));
    };
    await start(concat, capstan.url); // past the API, by its leave
    await start(thumbnail, MEDIA_URL);
  });
  afterAll(async () => {
    await Promise.all(instances.map((instance) => instance.stop()));
    await capstan?.stop();
    await gateway?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test('make a video and its cover, which the job lists with their digests', async () => {
    const { body: job } = await capstan.request<{ job_id: string }>('POST', '/v1/jobs', {
      job: {
        clips: [
          { media_store_path: 'media://job/first.mp4' },
          { media_store_path: 'media://job/second.mp4' },
        ],
      },
    });
    const transfer = await createMediaTransfer(capstan.url, capstan.key);
    const { files } = await makeDemoMedia(folder, folder);
    for (const file of ['first.mp4', 'second.mp4']) {
      const local = { path: files[file] ?? '', contentType: 'video/mp4' };
      await transfer.upload(local, { job_id: job.job_id, file }, signal);
    }
    const definition = { pipeline: 'over-s3', version: '1', steps };
    const asked = { definition, job_id: job.job_id };
    const { body: run } = await capstan.request<{ run_id: string }>('POST', '/v1/runs', asked);
    expect(await capstan.ended(run.run_id, 60_000)).toMatchObject({ state: 'succeeded' });

    const video = join(folder, 'back.mp4');
    await transfer.download({ job_id: job.job_id, file: 'all.mp4' }, video, signal);
    const facts = await probeMedia(await locateMediaTools(folder), video, AbortSignal.timeout(60_000));
    expect(facts).toMatchObject({ durationS: expect.closeTo(5, 0), video: { codec: 'h264' } });

    const listed = await capstan.request<{ artifacts: object[] }>('GET', `/v1/jobs/${job.job_id}`);
    const place = `media://${job.job_id}`;
    expect(listed.body.artifacts).toEqual(
      ['all.mp4', 'cover.jpg', 'first.mp4', 'second.mp4'].map((file) =>
        expect.objectContaining({
          reference: `${place}/${file}`,
          sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        }),
      ),
    );
  });

  test.runIf(isLong)('a step whose file is in a bucket that is away waits for it', async () => {
    const { body: job } = await capstan.request<{ job_id: string }>('POST', '/v1/jobs', {
      job: { clips: [{ media_store_path: 'media://job/first.mp4' }] },
    });
    const { files } = await makeDemoMedia(await mkdtemp(join(folder, 'clips-')), folder);
    const transfer = await createMediaTransfer(gateway.mediaUrl('run'), undefined);
    const local = { path: files['first.mp4'] ?? '', contentType: 'video/mp4' };
    await transfer.upload(local, { job_id: job.job_id, file: 'first.mp4' }, signal);
    await gateway.kill();
    const definition = { pipeline: 'over-s3', version: '1', steps };
    const asked = { definition, job_id: job.job_id };
    const { body: run } = await capstan.request<{ run_id: string }>('POST', '/v1/runs', asked);
    await waitFor('a refused attempt', async () => {
      const { body } = await capstan.request<{ attempts: unknown[] }>(
        'GET',
        `/v1/runs/${run.run_id}/steps/join`,
      );
      return body.attempts.length > 0;
    });
    await gateway.start();
    expect(await capstan.ended(run.run_id, 60_000)).toMatchObject({ state: 'succeeded' });
  });

  test('a bucket that is away makes no server unready, and its files are stored when it is back', async () => {
    await gateway.kill();
    const { body: job } = await capstan.request<{ job_id: string }>('POST', '/v1/jobs', { job: {} });
    const put = await capstan.request('PUT', `/v1/media/${job.job_id}/a.txt`, '"x"');
    expect(put).toMatchObject({ status: 503, body: { code: 'unavailable' } });
    expect(await capstan.request('GET', '/readyz')).toMatchObject({ status: 200 });
    await gateway.start();
    expect(await capstan.request('PUT', `/v1/media/${job.job_id}/a.txt`, '"x"')).toMatchObject({
      status: 201,
    });
  });
});
