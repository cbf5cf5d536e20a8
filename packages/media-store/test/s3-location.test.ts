import { describe, expect, it } from 'vitest';
import { describeLocation, loadS3Packages, parseS3Url } from '../src/s3-bucket.ts';

describe('parseS3Url', () => {
  it('reads bucket, prefix and parameters', () => {
    expect(parseS3Url('s3://my-bucket/a/b/?region=eu-central-1')).toEqual({
      bucket: 'my-bucket',
      prefix: 'a/b',
      region: 'eu-central-1',
      endpoint: undefined,
      pathStyle: false,
    });
    const own = parseS3Url('s3://media?endpoint=http://127.0.0.1:9000&path_style=true');
    expect(own).toMatchObject({ prefix: '', region: 'us-east-1', pathStyle: true });
    expect(describeLocation(own)).toBe('s3://media at http://127.0.0.1:9000');
  });

  it.each([
    ['s3://', 'the bucket is ""'],
    ['s3://My_Bucket', 'small letters, digits, dots and dashes'],
    ['s3://key:secret@bucket', 'AWS_ACCESS_KEY_ID'],
    ['s3://bucket:9000', 'endpoint'],
    ['s3://bucket/a//b', 'between slashes'],
    ['s3://bucket/~a', 'between slashes'],
    ['s3://bucket?regoin=x', 'seen was regoin; allowed are region, endpoint, path_style'],
    ['s3://bucket?endpoint=minio:9000', 'allowed is an http or https address'],
    ['s3://bucket?path_style=yes', 'allowed are true and false'],
  ])('refuses %s with the reason', (url, words) => {
    expect(() => parseS3Url(url)).toThrow(words);
  });
});

it('names the command that installs missing packages', async () => {
  const missing = Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' });
  await expect(loadS3Packages(() => Promise.reject(missing))).rejects.toThrow(
    /npm install @aws-sdk\/client-s3@[\d.]+ @aws-sdk\/lib-storage@[\d.]+ @aws-sdk\/s3-request-presigner@[\d.]+$/,
  );
  await expect(loadS3Packages(() => Promise.reject(new Error('other')))).rejects.toThrow('other');
});
