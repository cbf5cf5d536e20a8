// `npm run faults:migrations`: from a version to one with another migration and back, process by process, under three
// hundred runs, or as many as said.
import { spawn } from 'node:child_process';

const runs = process.argv[2] ?? '300';
const child = spawn('npx', ['vitest', 'run', 'test/e2e/rolling-migration.test.ts'], {
  stdio: 'inherit',
  shell: process.platform === 'win32',
  env: { ...process.env, LONG: '1', FAULT_RUNS: runs },
});
child.once('close', (code) => process.exit(code ?? 1));
