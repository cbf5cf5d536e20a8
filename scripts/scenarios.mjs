// `npm run faults:scenarios -- --times 20`: plays the scenarios over four router processes so many times larger (10 if it is
// not said), and prints what each came to.
import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { times: { type: 'string', default: '10' } } });
const child = spawn('npx', ['vitest', 'run', 'test/scenarios/scenarios.test.ts'], {
  stdio: 'inherit',
  shell: process.platform === 'win32',
  env: { ...process.env, LONG: '1', TIMES: values.times },
});
child.once('close', (code) => process.exit(code ?? 1));
