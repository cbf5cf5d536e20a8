/** What the server of the other tests does not do: uploads of yesterday, in pages, and answers to a condition. */
import * as s3 from '@aws-sdk/client-s3';
import { parseMediaPath } from '@capstan/core/contracts/media';
import { expect, it } from 'vitest';
import type { Bucket } from '../src/s3-bucket.ts';
import { removeObject, sweepUploads } from '../src/s3-objects.ts';

const old = new Date(Date.now() - 25 * 3_600_000);
const young = new Date(Date.now() - 3_600_000);

/** By marker. */
const pages: Readonly<Record<string, Partial<s3.ListMultipartUploadsCommandOutput>>> = {
  start: {
    Uploads: [
      { Key: 'p/job_1/a', UploadId: '1', Initiated: old },
      { Key: 'p/job_1/b', UploadId: '2', Initiated: young },
    ],
    IsTruncated: true,
    NextKeyMarker: 'p/job_1/b',
    NextUploadIdMarker: '2',
  },
  'p/job_1/b': {
    Uploads: [
      { Key: 'p/not~ours', UploadId: '3', Initiated: old },
      { Key: 'p/job_2/c', UploadId: '4', Initiated: old },
    ],
    // As some servers do: a marker on the last page too.
    IsTruncated: false,
    NextKeyMarker: 'p/job_2/c',
  },
};

it('aborts uploads of more than a day ago, of its own files alone', async () => {
  const aborted: unknown[] = [];
  const send = async (command: unknown) => {
    if (command instanceof s3.ListMultipartUploadsCommand) return pages[command.input.KeyMarker ?? 'start'];
    if (command instanceof s3.AbortMultipartUploadCommand) aborted.push(command.input);
    return {};
  };
  const bucket = {
    packages: { s3 },
    client: { send },
    below: () => ({ Bucket: 'media', Prefix: 'p/' }),
    pathOf: (key: string) => parseMediaPath(key.slice(2)),
  } as unknown as Bucket;
  expect(await sweepUploads(bucket, 3_600_000)).toBe(2);
  expect(aborted).toEqual([
    { Bucket: 'media', Key: 'p/job_1/a', UploadId: '1' },
    { Bucket: 'media', Key: 'p/job_2/c', UploadId: '4' },
  ]);
});

/** A bucket with one object; `answer` is what a condition of its deletion is answered. */
function aBucketThatAnswers(answer: { readonly status: number; readonly name: string }) {
  const deleted: (string | undefined)[] = [];
  const send = async (command: unknown) => {
    if (command instanceof s3.HeadObjectCommand) return { ETag: '"one"', ContentLength: 1 };
    if (!(command instanceof s3.DeleteObjectCommand)) return {};
    const { IfMatch } = command.input;
    deleted.push(IfMatch);
    if (IfMatch === undefined) return {};
    throw Object.assign(new Error('no'), {
      name: answer.name,
      $metadata: { httpStatusCode: answer.status },
    });
  };
  const bucket = { packages: { s3 }, client: { send }, at: () => ({ Bucket: 'media', Key: 'p/job_1/a' }) };
  return { bucket: bucket as unknown as Bucket, deleted };
}

const path = { job_id: 'job_1', file: 'a' };

it('leaves what replaced an object at the moment of its deletion', async () => {
  const { bucket, deleted } = aBucketThatAnswers({ status: 412, name: 'PreconditionFailed' });
  expect(await removeObject(bucket, path, 'another')).toBe(false);
  expect(deleted).toEqual([]);
  expect(await removeObject(bucket, path, 'one')).toBe(false);
  expect(deleted).toEqual(['"one"']);
});

it('deletes one state without a condition where the server knows none', async () => {
  const { bucket, deleted } = aBucketThatAnswers({ status: 501, name: 'NotImplemented' });
  expect(await removeObject(bucket, path, 'one')).toBe(true);
  expect(deleted).toEqual(['"one"', undefined]);
});
