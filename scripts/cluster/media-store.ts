/** An S3 server of the cluster's own, versitygw over a folder, and the settings of processes for it. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ClusterPlace } from './place.ts';

const bucket = 'media';
const keys = { AWS_ACCESS_KEY_ID: 'cluster', AWS_SECRET_ACCESS_KEY: 'of this machine alone' };

export interface MediaPart {
  readonly mediaUrl: string;
  readonly environment: NodeJS.ProcessEnv;
}

export async function startMediaStore(place: ClusterPlace, program: string): Promise<MediaPart> {
  const folder = join(place.folder, 's3');
  await mkdir(join(folder, bucket), { recursive: true });
  const endpoint = `http://127.0.0.1:${place.ports.s3}`;
  await place.start({
    name: 's3',
    command: program,
    args: ['--port', `127.0.0.1:${place.ports.s3}`, '--health', '/healthz', '--quiet', 'posix', folder],
    cwd: place.folder,
    env: {
      PATH: process.env.PATH,
      ROOT_ACCESS_KEY: keys.AWS_ACCESS_KEY_ID,
      ROOT_SECRET_KEY: keys.AWS_SECRET_ACCESS_KEY,
    },
    account: null,
    logFile: join(place.folder, 'logs', 's3.log'),
    stopSignal: 'SIGTERM',
    stopGraceMs: 5_000,
    readyTimeoutMs: 20_000,
    isReady: async () => (await fetch(`${endpoint}/healthz`)).ok,
  });
  const mediaUrl = `s3://${bucket}/capstan?endpoint=${endpoint}&path_style=true`;
  return { mediaUrl, environment: { ...keys, AWS_EC2_METADATA_DISABLED: 'true', MEDIA_URL: mediaUrl } };
}
