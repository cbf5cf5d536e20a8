/** The checks of libraries: a script for each, in a process of its own, which prints a line of JSON for each feature. */
import { cp, mkdir, readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { runCommand } from '../package/run-command.ts';
import { ensureNodePackages, ensurePythonEnvironment } from '../tools/ensure-program.ts';
import { type Finding, nodeClients, nodePackages, pythonClients, type Served } from './clients.ts';

export interface Library {
  readonly name: string;
  readonly command: readonly string[];
}

const here = import.meta.dirname;

/** Node resolves packages from the folder of a script, so the scripts lie beside the packages. */
async function layOutScripts(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await symlink(
    join(await ensureNodePackages('clients', nodePackages), 'node_modules'),
    join(folder, 'node_modules'),
  );
  for (const file of await readdir(join(here, 'node')))
    await cp(join(here, 'node', file), join(folder, file));
}

/** @param folder of this run @returns the libraries with the word in their names @throws Error of what cannot be installed */
export async function installLibraries(folder: string, word: string): Promise<readonly Library[]> {
  const python = Object.entries(pythonClients).filter(([name]) => name.includes(word));
  const node = nodeClients.filter((script) => script.includes(word));
  if (node.length > 0) await layOutScripts(folder);
  const libraries: Library[] = node.map((script) => {
    return { name: script, command: [process.execPath, join(folder, script)] };
  });
  for (const [name, requirement] of python) {
    const program = await ensurePythonEnvironment(requirement);
    libraries.push({ name, command: [program, '-B', join(here, 'python', `use_${name}.py`)] });
  }
  return libraries;
}

/** @returns a finding without features where the script itself fails */
export async function useLibrary(
  { name, command }: Library,
  { url, apiKey, model }: Served,
  folder: string,
): Promise<readonly Finding[]> {
  const environment = {
    PATH: process.env.PATH,
    HOME: folder,
    CAPSTAN_SERVER: url,
    CAPSTAN_KEY: apiKey,
    CAPSTAN_MODEL: model,
  };
  try {
    const printed = await runCommand(command, { cwd: folder, environment, timeoutMs: 300_000 });
    const lines = printed.split('\n').filter((line) => line.startsWith('{"client"'));
    return lines.map((line) => JSON.parse(line) as Finding);
  } catch (error) {
    return [
      { client: name, feature: 'start', fault: error instanceof Error ? error.message : String(error) },
    ];
  }
}
