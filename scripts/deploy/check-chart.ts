/** The Helm chart: linted, rendered with each of its trial values, and the result held to Kubernetes' schemas. */
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '../package/run-command.ts';
import { ensureGoProgram, ensurePythonProgram } from '../tools/ensure-program.ts';
import { checkSettings } from './check-settings.ts';

const kubernetes = '1.34.0';

interface Place {
  /** The checkout. */
  readonly root: string;
  /** For what is rendered. */
  readonly scratch: string;
}

/** @returns how many objects were held to their schemas */
async function checkValues(helm: string, validate: string, values: string, place: Place): Promise<number> {
  const { root, scratch } = place;
  const chart = join(root, 'deploy/helm/capstan');
  const given = ['-f', join(chart, 'ci', values)];
  await runCommand([helm, 'lint', '--strict', '--quiet', chart, ...given], { cwd: root });
  const template = [helm, 'template', 'capstan', chart, '--kube-version', kubernetes, ...given];
  const rendered = join(scratch, values);
  const text = await runCommand(template, { cwd: root });
  await writeFile(rendered, text);
  await checkSettings(text);
  const printed = await runCommand([validate, '--strict', rendered], { cwd: root });
  const objects = printed.match(/ passed for resource /g)?.length ?? 0;
  if (objects === 0) throw new Error(`${values} renders nothing:\n${printed}`);
  return objects;
}

const secret = ['--set', 'database.existingSecret=secret'];
const claim = ['--set', 'media.existingClaim=claim'];
const url = ['--set', 'publicUrl=https://capstan.example.com'];
const whole = [...secret, ...claim, ...url];
const oidc = [...whole, '--set', 'oidc.issuer=https://id.example.com'];
const grouped = [...oidc, '--set-json', 'oidc.groups={"ops":{"role":"admin","projects":["*"]}}'];

/** The required settings, and a word by which each is asked for where it alone is not: templates come in any order. */
const refused = [
  { given: [...claim, ...url], asked: 'existingSecret' },
  { given: [...secret, ...url], asked: 'existingClaim' },
  { given: [...secret, ...claim], asked: 'publicUrl' },
  { given: [...whole, '--set', 'oidc.issuer=http://id.example.com'], asked: 'oidc/issuer' },
  { given: oidc, asked: 'oidc.groups' },
  { given: grouped, asked: 'oidc.clientId' },
  { given: [...grouped, '--set', 'oidc.clientId=capstan'], asked: 'oidc.existingSecret' },
] as const;

async function checkRefusals(helm: string, { root }: Place): Promise<void> {
  const chart = join(root, 'deploy/helm/capstan');
  const template = [helm, 'template', 'capstan', chart, '--kube-version', kubernetes];
  for (const { given, asked } of refused) {
    const printed = await runCommand([...template, ...given], { cwd: root, exitCode: 1 });
    if (!printed.includes(asked))
      throw new Error(`with ${given.join(' ')} no ${asked} is asked for:\n${printed}`);
  }
}

export async function checkChart(place: Place): Promise<string> {
  const helm = await ensureGoProgram({ module: 'helm.sh/helm/v3/cmd/helm', version: '3.22.0', name: 'helm' });
  const validate = await ensurePythonProgram('kubernetes-validate==1.37.0', 'kubernetes-validate');
  await checkRefusals(helm, place);
  const files = await readdir(join(place.root, 'deploy/helm/capstan/ci'));
  const counts = await Promise.all(files.map((values) => checkValues(helm, validate, values, place)));
  return `chart: ${files.length} sets of values, ${counts.reduce((sum, count) => sum + count)} objects`;
}
