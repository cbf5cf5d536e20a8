// Runs `npm ci` when dependencies are missing or older than the lockfile, so that
// `npm run demo` and `npm test` work on a fresh clone. Uses Node's built-ins only. `npm ci` marks them as installed.
import { spawnSync } from 'node:child_process';
import { isInstalled } from './install-mark.mjs';

if (!isInstalled()) {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 19)) {
    console.error(`Capstan needs Node 20.19 or newer; this is ${process.versions.node}.`);
    process.exit(1);
  }
  console.error('Installing the dependencies with npm ci: about 1 GB, once, 20 to 60 s …');
  const began = performance.now();
  const npm = process.env.npm_execpath;
  const [command, prefix] = npm?.endsWith('.js') ? [process.execPath, [npm]] : ['npm', []];
  const result = spawnSync(command, [...prefix, 'ci', '--no-audit', '--no-fund'], {
    stdio: ['ignore', 2, 2],
    shell: command === 'npm' && process.platform === 'win32',
  });
  if (result.status !== 0) process.exit(result.status ?? 1);
  console.error(`Installed in ${((performance.now() - began) / 1000).toFixed(0)} s.`);
}
