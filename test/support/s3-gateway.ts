/** A real S3 server for a test: versitygw over a temporary folder, with a bucket; tests can kill and restart it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { choosePort } from '../../src/dev/ports.ts';
import { waitFor } from './wait.ts';

export interface S3Gateway {
  readonly endpoint: string;
  readonly bucket: string;
  /** Its own keys, as environment variables of processes. */
  readonly keys: { readonly AWS_ACCESS_KEY_ID: string; readonly AWS_SECRET_ACCESS_KEY: string };
  /** `s3://…` of a prefix of the bucket. */
  readonly mediaUrl: (prefix: string) => string;
  readonly kill: () => Promise<void>;
  readonly start: () => Promise<void>;
  readonly stop: () => Promise<void>;
}

const keys = { AWS_ACCESS_KEY_ID: 'capstan', AWS_SECRET_ACCESS_KEY: 'of the tests alone' };
const bucket = 'media';

interface Place {
  readonly program: string;
  readonly folder: string;
  readonly port: number;
}

/** The shell kills it when its own input ends: on purpose, or because this process is gone. */
const untilInputEnds = 'exec 3<&0; "$@" 3<&- & cat <&3 >/dev/null; kill -9 $!; wait';

function startServer({ program, folder, port }: Place): ChildProcess {
  const own = ['--port', `127.0.0.1:${port}`, '--health', '/healthz', '--quiet'];
  return spawn('bash', ['-c', untilInputEnds, 'gateway', program, ...own, 'posix', folder], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: {
      ...process.env,
      ROOT_ACCESS_KEY: keys.AWS_ACCESS_KEY_ID,
      ROOT_SECRET_KEY: keys.AWS_SECRET_ACCESS_KEY,
    },
  });
}

async function isHealthy(endpoint: string): Promise<boolean> {
  return fetch(`${endpoint}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  );
}

/** @param program of versitygw. Sets the AWS keys of this process to those of the server. */
export async function startS3Gateway(program: string): Promise<S3Gateway> {
  Object.assign(process.env, keys, { AWS_EC2_METADATA_DISABLED: 'true' });
  const folder = await mkdtemp(join(tmpdir(), 'capstan-s3-'));
  await mkdir(join(folder, bucket));
  const port = await choosePort([]);
  const endpoint = `http://127.0.0.1:${port}`;
  let server: ChildProcess | null = null;
  const start = async (): Promise<void> => {
    server = startServer({ program, folder, port });
    await waitFor('the S3 server', () => isHealthy(endpoint));
  };
  const kill = async (): Promise<void> => {
    if (server === null) return;
    const gone = new Promise((resolve) => server?.once('exit', resolve));
    server.stdin?.end();
    await gone;
    server = null;
  };
  await start();
  return {
    endpoint,
    bucket,
    keys,
    mediaUrl: (prefix) => `s3://${bucket}/${prefix}?endpoint=${endpoint}&path_style=true`,
    start,
    kill,
    stop: async () => {
      await kill();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
