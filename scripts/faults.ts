/** `npm run faults -- NAME [options]`: plays faults against whole processes; without a name it lists all plays. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describeTests, type FaultTests, faults } from './commands/faults.ts';
import { runNamed } from './commands/named.ts';

async function play(tests: FaultTests, words: readonly string[]): Promise<void> {
  const { files, environment } = describeTests(tests, words);
  const child = spawn('npx', ['vitest', 'run', ...files], {
    stdio: 'inherit',
    shell: process.platform === 'win32',
    env: { ...process.env, ...environment },
  });
  const [code] = await once(child, 'close');
  process.exitCode = code ?? 1;
}

await runNamed('faults', faults, (entry, words) => {
  if ('files' in entry) return play(entry, words);
  process.argv.splice(2, 1);
  return entry.load();
});
