// `npm run faults:vanished`: a machine vanishes at each stage of 1 and of 30 open calls, or of as many as said ("1,5"), as
// root on Linux. Prints the seconds until the next attempt, and fails where they are 20 or more.
import { spawn } from 'node:child_process';

const child = spawn('npx', ['vitest', 'run', 'test/e2e/vanished-machines.test.ts'], {
  stdio: 'inherit',
  env: { ...process.env, LONG: '1', FAULT_CALLS: process.argv[2] ?? '1,30' },
});
child.once('close', (code) => process.exit(code ?? 1));
