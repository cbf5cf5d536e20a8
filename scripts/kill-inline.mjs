// `npm run faults:inline`: kills a worker 20 times, or as often as said, while short steps go in batches, replaces workers as
// often, and prints how many calls there were and how many were lost. Then every kind of step goes without a queue while
// workers and the server are killed.
import { spawn } from 'node:child_process';

const kills = process.argv[2] ?? '20';
const files = ['killed-inline', 'killed-engine', 'rolling-restart'].map((name) => `test/e2e/${name}.test.ts`);
const child = spawn('npx', ['vitest', 'run', ...files], {
  stdio: 'inherit',
  shell: process.platform === 'win32',
  env: { ...process.env, LONG: '1', KILLS: kills, DISPATCH: 'inline' },
});
child.once('close', (code) => process.exit(code ?? 1));
