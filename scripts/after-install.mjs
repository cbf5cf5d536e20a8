// After `npm ci` and `npm install`: notes what is installed, so that `npm run demo` does not install it again, and points
// git at the repository's hooks. Outside a checkout (a published package, an archive) there are no hooks.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { markInstalled } from './install-mark.mjs';

const { npm_command = '', npm_config_omit = '', NODE_ENV } = process.env;
const isWhole = !npm_config_omit.includes('dev') && NODE_ENV !== 'production';
if (isWhole && ['ci', 'install'].includes(npm_command)) markInstalled();

if (existsSync('.git')) {
  try {
    execFileSync('git', ['config', 'core.hooksPath', '.githooks'], { stdio: 'ignore' });
  } catch {
    // A checkout without git on the PATH, or owned by another user: hooks are a convenience, not a need.
  }
}
