// `npm run faults:streams`: 500 streams of paid calls at once, or as many as said, under a limit that admits a fifth of them:
// undisturbed, with the server killed, with the provider gone, and with readers that do not read. Prints what each came to.
import { spawn } from 'node:child_process';

const streams = process.argv[2] ?? '500';
const child = spawn('npx', ['vitest', 'run', 'test/e2e/paid-streams.test.ts'], {
  stdio: 'inherit',
  shell: process.platform === 'win32',
  env: { ...process.env, LONG: '1', STREAMS: streams },
});
child.once('close', (code) => process.exit(code ?? 1));
