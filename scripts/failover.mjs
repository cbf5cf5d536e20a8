// `npm run faults:failover`: two instances and twenty runs, or as many as said, for each fault of the first one, and prints
// how long after the fault was seen the other one began.
import { spawn } from 'node:child_process';

const runs = process.argv[2] ?? '20';
const child = spawn('npx', ['vitest', 'run', 'test/e2e/killed-instances.test.ts'], {
  stdio: 'inherit',
  shell: process.platform === 'win32',
  env: { ...process.env, LONG: '1', FAULT_RUNS: runs },
});
child.once('close', (code) => process.exit(code ?? 1));
