/** The systemd units: verified, and what they may do at most as much as is written here. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { findOnPath } from '../../src/dev/programs.ts';
import { runCommand } from '../package/run-command.ts';

/** Tenths of systemd's own scale from 0 to 10. */
const mostExposure = 18;

/** @throws Error with systemd's findings */
export async function checkUnits(root: string): Promise<string> {
  const analyze = await findOnPath('systemd-analyze', process.env);
  if (analyze === null) return 'systemd units: NOT checked, there is no systemd-analyze here';
  const folder = join(root, 'deploy/systemd');
  const units = (await readdir(folder)).map((name) => join(folder, name));
  await runCommand([analyze, 'verify', ...units], { cwd: root });
  const limit = ['--offline=true', `--threshold=${mostExposure}`];
  const printed = await runCommand([analyze, 'security', ...limit, ...units], { cwd: root });
  const levels = [...printed.matchAll(/exposure level for \S+: ([\d.]+)/g)].map(([, level]) => level);
  return `systemd units: ${units.length} verified, exposure ${levels.join(', ')}`;
}
