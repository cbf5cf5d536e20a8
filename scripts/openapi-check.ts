/**
 * `npm run openapi:check`: makes clients of the OpenAPI document with the generators that people use, in Python, Go and
 * TypeScript. It fails if one of them warns, and where the result does not load or compile.
 */
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { toGeneratorDocument } from '../src/api/documents/generator-document.ts';
import { createOpenApi } from '../src/api/documents/openapi.ts';
import { declaredRoutes } from './docs/declared-routes.ts';
import { runCommand } from './package/run-command.ts';
import { ensureGoProgram, ensurePythonProgram } from './tools/ensure-program.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const scratch = await mkdtemp(join(tmpdir(), 'capstan-clients-'));
const document = join(scratch, 'openapi.json');

/** Loads every module of a generated client, with warnings of Python as errors. */
const loadAll = `
import pkgutil, sys
import capstan_client
names = [m.name for m in pkgutil.walk_packages(capstan_client.__path__, 'capstan_client.')]
for name in names: __import__(name)
print(len([n for n in names if n.startswith('capstan_client.api.') and n.count('.') == 3]))
`;

async function checkPython(): Promise<string> {
  const requirement = 'openapi-python-client==0.29.1';
  const generator = await ensurePythonProgram(requirement, 'openapi-python-client');
  const folder = join(scratch, 'python');
  const words = ['generate', '--path', document, '--output-path', folder];
  const said = await runCommand([generator, ...words], { cwd: scratch });
  if (/WARNING|ERROR/.test(said)) throw new Error(`openapi-python-client warns:\n${said}`);
  const python = join(dirname(generator), 'python');
  const loaded = await runCommand([python, '-W', 'error', '-c', loadAll], { cwd: folder });
  return `${requirement}: ${loaded.trim()} operations`;
}

async function checkGo(): Promise<string> {
  const version = '2.8.2';
  const module = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen';
  const generator = await ensureGoProgram({ module, version, name: 'oapi-codegen' });
  const folder = join(scratch, 'go');
  await mkdir(folder);
  const words = ['-generate', 'types,client', '-package', 'capstan', '-o', 'capstan.go', document];
  const said = await runCommand([generator, ...words], { cwd: folder });
  if (said.trim() !== '') throw new Error(`oapi-codegen warns:\n${said}`);
  for (const command of ['mod init example.com/capstan', 'mod tidy', 'vet ./...']) {
    await runCommand(['go', ...command.split(' ')], { cwd: folder });
  }
  const source = await readFile(join(folder, 'capstan.go'), 'utf8');
  const functions = source.match(/^func \(c \*ClientWithResponses\) \w+WithResponse\(/gm) ?? [];
  return `oapi-codegen ${version}: ${functions.length} functions`;
}

async function checkTypeScript(): Promise<string> {
  const folder = join(scratch, 'typescript');
  await mkdir(folder);
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  const program = join(root, 'node_modules/.bin/openapi-typescript');
  const said = await runCommand([program, document, '-o', 'capstan.d.ts'], { cwd: folder });
  if (/warn|error/i.test(said)) throw new Error(`openapi-typescript warns:\n${said}`);
  await writeFile(join(folder, 'use.mts'), use);
  const compiler = join(root, 'node_modules/typescript-7/bin/tsc');
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', 'node'];
  await runCommand([process.execPath, compiler, ...options, 'use.mts'], { cwd: folder });
  const types = await readFile(join(folder, 'capstan.d.ts'), 'utf8');
  return `openapi-typescript: ${types.match(/^ {4}\w+: \{\n {8}parameters/gm)?.length ?? 0} operations`;
}

const use = `import createClient from 'openapi-fetch';
import type { paths } from './capstan.d.ts';
const capstan = createClient<paths>({ baseUrl: 'http://127.0.0.1:7400' });
const { data } = await capstan.GET('/v1/runs/{id}', { params: { path: { id: 'run_1' } } });
export const state: string | undefined = data?.state;
`;

const routes = declaredRoutes().filter(({ tag }) => tag !== 'docs' && tag !== 'console');
const whole: Record<string, unknown> = JSON.parse(JSON.stringify(createOpenApi(routes)));
await writeFile(document, JSON.stringify(toGeneratorDocument(whole)));
for (const check of [checkPython, checkGo, checkTypeScript]) {
  await check().then(
    (words) => console.log(`ok  ${words}`),
    (error: Error) => {
      console.error(error.message);
      process.exitCode = 1;
    },
  );
}
await rm(scratch, { recursive: true });
