// `npm test`: the checks and the tests side by side, because tests mostly wait; the checks' words come last, in one
// piece. Arguments go to vitest: `npm test -- --project=!faults`.
import { spawn } from 'node:child_process';

/** @returns exit code, and what was printed where it is kept */
function run(command, args, stdio) {
  const child = spawn(command, args, { stdio, shell: process.platform === 'win32' });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text) => {
      printed += text;
    });
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code: code ?? 1, printed }));
  });
}

const [tests, checks] = await Promise.all([
  run('npx', ['vitest', 'run', ...process.argv.slice(2)], 'inherit'),
  run('npm', ['run', '--silent', 'check'], ['ignore', 'pipe', 'pipe']),
]);
console.log(`\n${checks.printed.trim()}\nnpm run check ${checks.code === 0 ? 'passed' : 'FAILED'}`);
process.exit(tests.code || checks.code);
