// `npm test`: the checks and the tests side by side, because tests also wait; the checks' words come last, in one piece.
// Arguments go to vitest, and then nothing is checked: `npm test -- packages/core/test`. With `--long`, which
// `npm run test:long` gives, the tests are those of test/support/long.ts too.
import { spawn } from 'node:child_process';

const env = { ...process.env, ...(process.argv.includes('--long') ? { LONG: '1' } : {}) };

/** @returns exit code, and what was printed where it is kept */
function run(command, args, stdio) {
  const child = spawn(command, args, { stdio, env, shell: process.platform === 'win32' });
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

async function check() {
  const { code, printed } = await run('npm', ['run', '--silent', 'check'], ['ignore', 'pipe', 'pipe']);
  return { code, words: `\n${printed.trim()}\nnpm run check ${code === 0 ? 'passed' : 'FAILED'}` };
}

const choice = process.argv.slice(2).filter((word) => word !== '--long');
const [tests, checks] = await Promise.all([
  run('npx', ['vitest', 'run', ...choice], 'inherit'),
  choice.length === 0 ? check() : { code: 0, words: 'nothing was checked: npm run check' },
]);
console.log(checks.words);
process.exit(tests.code || checks.code);
