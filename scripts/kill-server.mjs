// `npm run faults:kills`: kills the server 50 times, or as often as said, while keyed calls with a price end, and prints
// how many keys were called twice or paid twice.
import { spawn } from 'node:child_process';

const kills = process.argv[2] ?? '50';
const child = spawn('npx', ['vitest', 'run', 'test/e2e/killed-keyed-calls.test.ts'], {
  stdio: 'inherit',
  shell: process.platform === 'win32',
  env: { ...process.env, LONG: '1', KILLS: kills },
});
child.once('close', (code) => process.exit(code ?? 1));
