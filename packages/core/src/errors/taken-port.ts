/** Finds out which process listens on a port of this machine, for errors about a port that is in use. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface PortHolder {
  readonly pid: number;
  /** The process group. */
  readonly group: number;
  readonly command: string;
}

const listening = '0A';

/** The inodes of the sockets that listen on the port, on any address. */
function listSockets(port: number): Set<string> {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const rows = ['tcp', 'tcp6'].flatMap((table) => readFileSync(`/proc/net/${table}`, 'latin1').split('\n'));
  const fields = rows.map((row) => row.trim().split(/\s+/));
  const own = fields.filter(([, local, , state]) => local?.endsWith(suffix) && state === listening);
  return new Set(own.map((row) => `socket:[${row[9]}]`));
}

function orElse<Value>(read: () => Value, other: Value): Value {
  try {
    return read();
  } catch {
    return other;
  }
}

function holdsOne(pid: string, sockets: ReadonlySet<string>): boolean {
  const files = orElse(() => readdirSync(`/proc/${pid}/fd`), []);
  return files.some((file) => sockets.has(orElse(() => readlinkSync(`/proc/${pid}/fd/${file}`), '')));
}

function describeLinux(pid: string): PortHolder {
  const status = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const [, , group] = status.slice(status.lastIndexOf(')') + 2).split(' ');
  const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
  return { pid: Number(pid), group: Number(group), command };
}

function findOnLinux(port: number, guess: number): PortHolder | null {
  const sockets = listSockets(port);
  if (sockets.size === 0) return null;
  const pids = [String(guess), ...readdirSync('/proc').filter((name) => /^\d+$/.test(name))];
  const pid = pids.find((one) => holdsOne(one, sockets));
  return pid === undefined ? null : describeLinux(pid);
}

function findByTools(port: number): PortHolder | null {
  const ask = (program: string, args: string[]): string =>
    execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  const [pid = ''] = ask('lsof', ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-t']).split('\n');
  const group = Number(ask('ps', ['-o', 'pgid=', '-p', pid]));
  return { pid: Number(pid), group, command: ask('ps', ['-o', 'command=', '-p', pid]) };
}

/**
 * Null when no process listens there, or when it belongs to another user or another container.
 * @param guess the process that is looked at first
 */
export function findPortHolder(port: number, guess = process.pid): PortHolder | null {
  return orElse(() => (process.platform === 'linux' ? findOnLinux(port, guess) : findByTools(port)), null);
}

const shownCommand = 120;

/** Reports that a port is in use, and by which process as far as that can be seen. */
export function describeTakenPort(port: number): string {
  const holder = findPortHolder(port);
  const command =
    holder === null || holder.command.length <= shownCommand
      ? holder?.command
      : `${holder.command.slice(0, shownCommand)}…`;
  const who =
    holder === null ? 'another process, of another user or container' : `process ${holder.pid} (${command})`;
  return `port ${port} is in use by ${who}`;
}
