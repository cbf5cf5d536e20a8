/** A network namespace of Linux behind one link, which silently loses all packets when it is cut. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import type { Server } from 'node:net';

export interface NetworkNamespace {
  /** Its own. */
  readonly address: string;
  /** Starts a program in it, whose output can be read. */
  run(words: readonly string[]): ChildProcess;
  /** A listener of this process on a free port in the namespace. */
  listen(): Promise<Server>;
  cutLink(): void;
  mendLink(): void;
  close(): void;
}

function ip(...args: readonly string[]): void {
  execFileSync('ip', args, { stdio: ['ignore', 'ignore', 'pipe'] });
}

/** A socket stays in the namespace in which it was created, so a child creates it and hands it over. */
async function listenIn(name: string, address: string): Promise<Server> {
  const code = `const server = require('node:net').createServer();
    server.listen(0, '${address}', () => process.send('listening', server));`;
  const child = spawn('ip', ['netns', 'exec', name, process.execPath, '-e', code], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const [, server] = await once(child, 'message');
  child.kill();
  return server;
}

/** @throws Error where this process lacks the permission */
export function openNamespace(): NetworkNamespace {
  const number = randomInt(0x4000);
  const name = `capstan-${number}`;
  const [outside, inside] = [`capstan-${number}o`, `capstan-${number}i`];
  const mac = `02:00:00:00:${[number >> 8, number & 255].map((part) => part.toString(16).padStart(2, '0')).join(':')}`;
  const [host, address] = [1, 2].map((end) => `10.253.${number >> 6}.${((number & 63) << 2) + end}`);
  const close = (): void => {
    ip('link', 'del', outside);
    ip('netns', 'del', name);
  };
  ip('netns', 'add', name);
  try {
    ip('link', 'add', outside, 'type', 'veth', 'peer', 'name', inside, 'address', mac, 'netns', name);
    ip('addr', 'add', `${host}/30`, 'dev', outside);
    ip('link', 'set', outside, 'up');
    // A neighbour that does not answer goes unnoticed: as behind a router, and no "no route to host" after 3 s.
    ip('neigh', 'replace', `${address}`, 'lladdr', mac, 'nud', 'permanent', 'dev', outside);
    ip('-n', name, 'addr', 'add', `${address}/30`, 'dev', inside);
    ip('-n', name, 'link', 'set', inside, 'up');
  } catch (error) {
    ip('netns', 'del', name); // and its link
    throw error;
  }
  return {
    address: `${address}`,
    run: (words) => spawn('ip', ['netns', 'exec', name, ...words], { stdio: ['ignore', 'pipe', 'inherit'] }),
    listen: () => listenIn(name, `${address}`),
    cutLink: () => ip('-n', name, 'link', 'set', inside, 'down'),
    mendLink: () => ip('-n', name, 'link', 'set', inside, 'up'),
    close,
  };
}

/** The reason why there can be no namespace here, or null. */
export function findNamespaceObstacle(): string | null {
  try {
    openNamespace().close();
    return null;
  } catch (error) {
    return `there are network namespaces only for root on Linux, with \`ip\` (${(error as Error).message.trim()})`;
  }
}
