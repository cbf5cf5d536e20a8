/** Two public catalogues of prices, in the form in which files state prices: got once from npm and pip, into the cache. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { findCacheDir } from '../../src/dev/temporal/source.ts';
import { runCommand } from '../package/run-command.ts';
import { makeWhole } from '../tools/ensure-program.ts';

/** Pinned: a newer one is a change of the book, which a person reads. */
export const first = { name: '@pydantic/genai-prices', version: '0.1.8', published: '2026-09-23' } as const;
export const second = { name: 'litellm', version: '1.110.2' } as const;

const secondTable = 'litellm/model_prices_and_context_window_backup.json';

interface Catalogues {
  readonly first: FirstCatalogue;
  readonly second: Readonly<Record<string, SecondEntry>>;
  /** The texts of their licences. */
  readonly licences: readonly string[];
}

type FirstRate =
  | number
  | { readonly base: number; readonly tiers: readonly { start: number; price: number }[] };
export type FirstRates = Readonly<Record<string, FirstRate | undefined>>;

interface FirstConstraint {
  readonly type: 'start_date' | 'time_of_date';
  readonly start_date?: string;
}

type FirstMatch = { readonly equals: string } | { readonly or: readonly FirstMatch[] } | object;

export interface FirstModel {
  readonly id: string;
  readonly match: FirstMatch;
  readonly prices:
    | FirstRates
    | readonly { readonly constraint?: FirstConstraint; readonly prices: FirstRates }[];
}

export interface FirstProvider {
  readonly id: string;
  readonly api_pattern: string;
  readonly fallback_model_providers?: readonly string[];
  readonly models: readonly FirstModel[];
}

export interface FirstCatalogue {
  findProvider(options: { readonly providerId: string }): FirstProvider | undefined;
  calcPrice(
    usage: object,
    model: string,
    options: { readonly providerId: string },
  ): { readonly provider: FirstProvider; readonly model: FirstModel } | null;
}

export type SecondEntry = Readonly<Record<string, unknown>> & {
  readonly litellm_provider?: string;
  readonly mode?: string;
};

/** Tools of npm and pip unpack them; nothing of them is installed. */
async function download(folder: string): Promise<void> {
  console.log(`    getting ${first.name} ${first.version} and ${second.name} ${second.version}, once`);
  const cwd = folder;
  const packed = await runCommand(['npm', 'pack', '--silent', `${first.name}@${first.version}`], { cwd });
  await runCommand(['tar', 'xzf', packed.trim().split('\n').at(-1) ?? ''], { cwd });
  const wheel = ['--quiet', '--no-deps', '--only-binary', ':all:', '--dest', '.'];
  await runCommand(['python3', '-m', 'pip', 'download', ...wheel, `${second.name}==${second.version}`], {
    cwd,
  });
  const unpack = `import glob, zipfile
for name in glob.glob('litellm-*.whl'):
    with zipfile.ZipFile(name) as wheel:
        for member in wheel.namelist():
            if member == '${secondTable}' or member.endswith('licenses/LICENSE'):
                wheel.extract(member, 'second')`;
  await runCommand(['python3', '-c', unpack], { cwd });
}

export async function readCatalogues(): Promise<Catalogues> {
  const folder = join(findCacheDir(process.env, homedir()), `prices-${first.version}-${second.version}`);
  if (!existsSync(folder)) await makeWhole(folder, download);
  const index = pathToFileURL(join(folder, 'package/dist/index.js')).href;
  const read = (path: string): Promise<string> => readFile(join(folder, path), 'utf8');
  const info = `second/${second.name}-${second.version}.dist-info/licenses/LICENSE`;
  return {
    first: (await import(index)) as FirstCatalogue,
    second: JSON.parse(await read(`second/${secondTable}`)) as Record<string, SecondEntry>,
    licences: await Promise.all([read('package/LICENSE'), read(info)]),
  };
}
