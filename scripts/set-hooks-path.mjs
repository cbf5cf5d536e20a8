// Points git at the repository's hooks. Outside a checkout (a published package, an archive) it does nothing.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';

if (existsSync('.git')) {
  try {
    execFileSync('git', ['config', 'core.hooksPath', '.githooks'], { stdio: 'ignore' });
  } catch {
    // A checkout without git on the PATH, or owned by another user: hooks are a convenience, not a need.
  }
}
