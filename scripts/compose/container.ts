/**
 * A container without a daemon: mounts and processes of its own by `unshare`, the root of an image by `chroot`, on the
 * network of the caller. It follows the entry point, command, environment, user, read-only root, volumes, configs,
 * secrets and tmpfs of a service. An image that is not built here is this machine with stand-ins for its programs.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { chown, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ComposeProject, ComposeService } from './project.ts';

export interface ImageRoot {
  /** The folder with the files of the image. */
  readonly root: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
}

export interface ContainerPlace {
  readonly project: ComposeProject;
  /** Of Capstan. */
  readonly image: ImageRoot;
  /** Stand-ins for the programs of other images, as a folder for the PATH. */
  readonly standIns: string;
  readonly volumes: string;
  readonly logs: string;
}

export interface Container {
  readonly name: string;
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>;
  /** Runs a command in it, as `docker exec` does. @returns the exit code, and what it printed */
  exec(words: readonly string[]): Promise<{ readonly code: number | null; readonly printed: string }>;
  stop(): Promise<void>;
  readLog(): string;
}

interface Mount {
  readonly source: string;
  readonly target: string;
  readonly isReadOnly: boolean;
}

/** Targets of other images lie below folders that are replaced by empty ones. */
const replaced = ['/opt', '/run', '/var/lib/postgresql'] as const;

function isOwn({ image }: ComposeService): boolean {
  return image.startsWith('capstan:');
}

/** A new volume takes the owner of the folder of the image where it is first mounted. */
async function makeVolume(folder: string, inImage: string): Promise<void> {
  try {
    await mkdir(folder);
  } catch {
    return;
  }
  const { uid, gid } = statSync(inImage, { throwIfNoEntry: false }) ?? { uid: 0, gid: 0 };
  await chown(folder, uid, gid);
}

async function listMounts(service: ComposeService, place: ContainerPlace): Promise<readonly Mount[]> {
  const { project, image, volumes } = place;
  const named: Mount[] = [];
  for (const { source, target, read_only } of service.volumes) {
    const folder = join(volumes, source);
    await makeVolume(folder, join(isOwn(service) ? image.root : '/', target));
    named.push({ source: folder, target, isReadOnly: read_only });
  }
  const files = [
    ...service.configs.map(({ source, target }) => [project.configs[source]?.file, target] as const),
    ...service.secrets.map(({ source, target }) => [project.secrets[source]?.file, target] as const),
  ];
  return [...named, ...files.map(([source = '', target]) => ({ source, target, isReadOnly: true }))];
}

/** The places where something is mounted exist in the root. */
function preparePlaces(root: string, mounts: readonly Mount[]): void {
  for (const { source, target } of mounts) {
    const path = join(root, target);
    const isFolder = statSync(source).isDirectory();
    mkdirSync(isFolder ? path : dirname(path), { recursive: true });
    if (!isFolder && statSync(path, { throwIfNoEntry: false }) === undefined) writeFileSync(path, '');
  }
}

function mountLines(root: string, mounts: readonly Mount[]): string[] {
  return mounts.flatMap(({ source, target, isReadOnly }) => {
    const at = `'${join(root, target)}'`;
    const make = statSync(source).isDirectory()
      ? `mkdir -p ${at}`
      : `mkdir -p $(dirname ${at}) && touch ${at}`;
    return [
      make,
      `mount --bind '${source}' ${at}`,
      ...(isReadOnly ? [`mount -o remount,bind,ro ${at}`] : []),
    ];
  });
}

/** The script that makes the mounts, and becomes the command. */
function ownScript(service: ComposeService, mounts: readonly Mount[], { image }: ContainerPlace): string {
  const { root } = image;
  preparePlaces(root, mounts);
  const [user = '0', group = user] = (service.user ?? '0:0').split(':');
  return [
    'set -e',
    `mount --bind '${root}' '${root}'`,
    `mount -t proc proc '${root}/proc'`,
    `mount --rbind /dev '${root}/dev'`,
    ...mountLines(root, [...mounts, { source: '/etc/hosts', target: '/etc/hosts', isReadOnly: true }]),
    ...service.tmpfs.map((path) => `mount -t tmpfs -o mode=1777 tmpfs '${root}${path}'`),
    ...(service.read_only ? [`mount -o remount,bind,ro '${root}'`] : []),
    `exec setpriv --no-new-privs chroot --userspec=${user}:${group} --groups= '${root}' "$@"`,
  ].join('\n');
}

function foreignScript(mounts: readonly Mount[]): string {
  return [
    'set -e',
    'mount -t proc proc /proc',
    ...replaced.map((path) => `mkdir -p ${path} && mount -t tmpfs tmpfs ${path}`),
    ...mountLines('/', mounts),
    'exec "$@"',
  ].join('\n');
}

function wordsOf(service: ComposeService, { image }: ContainerPlace): readonly string[] {
  // Without an entry point of its own: that of the image, whose stand-in is named after it.
  const entrypoint = service.entrypoint ?? (isOwn(service) ? image.entrypoint : ['docker-entrypoint.sh']);
  return [...entrypoint, ...(service.command ?? [])];
}

function environmentOf(service: ComposeService, { image, standIns }: ContainerPlace): Record<string, string> {
  const given = Object.entries(service.environment).map(([name, value]) => [name, value ?? '']);
  const own = isOwn(service) ? image.environment : { PATH: `${standIns}:${process.env.PATH}`, HOME: '/tmp' };
  return { ...own, ...Object.fromEntries(given) };
}

/** The first process inside: the child of `unshare`. */
function readInner({ pid }: ChildProcess): string {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0] ?? '';
}

async function collect(child: ChildProcess): Promise<{ code: number | null; printed: string }> {
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      printed += text;
    });
  }
  const [code] = await once(child, 'close');
  return { code, printed };
}

/** @param more words after the command, as of `docker compose run` */
export async function startContainer(
  name: string,
  place: ContainerPlace,
  more?: readonly string[],
): Promise<Container> {
  const written = place.project.services[name] as ComposeService;
  const service = more === undefined ? written : { ...written, command: [...more] };
  const mounts = await listMounts(service, place);
  const script = isOwn(service) ? ownScript(service, mounts, place) : foreignScript(mounts);
  const words = ['--mount', '--pid', '--fork', '--kill-child', '--', '/bin/sh', '-c', script, name];
  const env = environmentOf(service, place);
  const logFile = join(place.logs, `${name}.log`);
  const log = openSync(logFile, 'a');
  const child = spawn('/usr/bin/unshare', [...words, ...wordsOf(service, place)], {
    env,
    stdio: ['ignore', log, log],
  });
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  const enter = ['--mount', '--pid', '--root', '--wd', '--target'];
  const [user = '0', group = user] = (isOwn(service) ? (service.user ?? '0:0') : '0:0').split(':');
  return {
    name,
    ended,
    exec: (command) =>
      collect(
        spawn(
          '/usr/bin/nsenter',
          [...enter, readInner(child), '--setuid', user, '--setgid', group, '--', ...command],
          {
            env,
            stdio: ['ignore', 'pipe', 'pipe'],
          },
        ),
      ),
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null)
        process.kill(Number(readInner(child)), 'SIGTERM');
      await ended;
    },
    readLog: () => readFileSync(logFile, 'utf8'),
  };
}

/** Stand-ins for programs of images that are not built here. @param programs paths by name, or texts of scripts */
export async function writeStandIns(
  folder: string,
  programs: Readonly<Record<string, string>>,
): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [name, program] of Object.entries(programs)) {
    const text = program.startsWith('#!') ? program : `#!/bin/sh\nexec '${program}' "$@"\n`;
    await writeFile(join(folder, name), text, { mode: 0o755 });
  }
}
