/**
 * A program of its own, in a network, mounts and processes of its own: plays `docker compose up` with the containers of
 * container.ts, runs a pipeline, and starts everything again. Each service has an address and its name, as in the network
 * of a project. Its argument is a file with the place; it ends with 1 and the reason when anything fails.
 */
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Container, type ContainerPlace, startContainer } from './container.ts';
import { type ComposeService, isTask, orderServices } from './project.ts';

const readyMs = 180_000;
const place: ContainerPlace & { readonly hosts: string } = JSON.parse(
  readFileSync(process.argv[2] ?? '', 'utf8'),
);
const { project } = place;
const names = Object.keys(project.services);

function openNetwork(): void {
  const run = (...words: readonly [string, ...string[]]) => execFileSync(words[0], words.slice(1));
  run('ip', 'link', 'set', 'lo', 'up');
  appendFileSync(place.hosts, '127.0.0.1 localhost\n');
  for (const [index, name] of names.entries()) {
    run('ip', 'addr', 'add', `172.30.0.${index + 10}/32`, 'dev', 'lo');
    appendFileSync(place.hosts, `172.30.0.${index + 10} ${name}\n`);
  }
  run('mount', '--bind', place.hosts, '/etc/hosts');
}

async function stage<Result>(title: string, work: () => Promise<Result>): Promise<Result> {
  const from = performance.now();
  const result = await work();
  console.log(`ok  ${title}  ${((performance.now() - from) / 1_000).toFixed(1)} s`);
  return result;
}

function failed(container: Container, reason: string): Error {
  return new Error(`${container.name}: ${reason}\n${container.readLog().split('\n').slice(-30).join('\n')}`);
}

async function awaitTask(container: Container): Promise<void> {
  const code = await Promise.race([container.ended, sleep(readyMs, undefined, { ref: false })]);
  if (code !== 0) throw failed(container, code === undefined ? 'does not end' : `exit code ${code}`);
}

/** Runs its health check until it succeeds. */
async function awaitHealth(container: Container, { healthcheck }: ComposeService): Promise<void> {
  const [kind, ...words] = healthcheck?.test ?? [];
  if (kind !== 'CMD') throw new Error(`${container.name}: its health check is no CMD`);
  let hasEnded = false;
  void container.ended.then(() => {
    hasEnded = true;
  });
  const deadline = performance.now() + readyMs;
  for (;;) {
    const { code, printed } = await container.exec(words);
    if (code === 0) return;
    if (hasEnded || performance.now() > deadline) throw failed(container, `is not healthy: ${printed}`);
    await sleep(500);
  }
}

/** @returns those that stay */
async function up(): Promise<readonly Container[]> {
  const running: Container[] = [];
  for (const name of orderServices(project)) {
    const service = project.services[name] as ComposeService;
    await stage(isTask(name, project) ? `${name} has ended` : `${name} is healthy`, async () => {
      const container = await startContainer(name, place);
      if (isTask(name, project)) return awaitTask(container);
      running.push(container);
      await awaitHealth(container, service);
    });
  }
  return running;
}

async function down(running: readonly Container[]): Promise<void> {
  for (const container of running.toReversed()) await container.stop();
}

/** `docker compose run --rm tools …` @returns what it printed @throws Error when that lacks the expected text */
async function useTools(words: readonly string[], expected: string): Promise<void> {
  const container = await startContainer('tools', place, words);
  const before = container.readLog().length;
  await awaitTask(container);
  const printed = container.readLog().slice(before);
  if (!printed.includes(expected)) throw failed(container, `printed no ${expected}`);
}

function runHello(name: string): Promise<void> {
  const words = ['run', '/opt/capstan/hello.yaml', '--job', JSON.stringify({ name }), '--watch'];
  return useTools(words, `HELLO FROM ${name.toUpperCase()}`);
}

async function checkAll(): Promise<void> {
  mkdirSync(place.volumes, { recursive: true });
  mkdirSync(join(place.logs), { recursive: true });
  openNetwork();
  const first = await up();
  await stage('tools run: a pipeline calls the capability', () => runHello('compose'));
  await stage('tools login: a link to the console', () =>
    useTools(['login'], 'http://localhost:7400/ui/login'),
  );
  await stage('down', () => down(first));
  const second = await up();
  await stage('tools ls: the run of before', () => useTools(['ls'], 'hello'));
  await stage('tools run: another one', () => runHello('again'));
  await stage('down', () => down(second));
}

await checkAll().catch((error: Error) => {
  console.error(error.message);
  process.exitCode = 1;
});
process.exit();
